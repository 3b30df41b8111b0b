"""Which the server wrote first: an order's 202 on one connection, or its first order.updated on another.

Raw sockets of one process on one machine: whatever is readable, the WebSocket is read first and the HTTP connections right
after it. On loopback a write is readable when it returns, so that an update that is there before its 202 was written before
it. (A client that waits for both at once sees them in either order: reading an HTTP answer takes it more turns.)

Usage: response_order.py PORT TOKEN ORDERS MARKET OUTCOME; prints {"orders", "updates", "early"}.
"""
import base64
import json
import os
import select
import socket
import sys
import time

HOST = "127.0.0.1"
CONNECTIONS = 4
DEADLINE_S = 40
TEXT, PING = 1, 9


def connect(port):
    sock = socket.create_connection((HOST, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def take(sock):
    """All that is there now."""
    data = b""
    while True:
        try:
            piece = sock.recv(1 << 20)
        except BlockingIOError:
            return data
        if piece == b"":
            raise SystemExit("a connection was closed")
        data += piece


class WebSocket:
    def __init__(self, port, token):
        self.sock = connect(port)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /api/v1/ws?token={token} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self.sock.sendall(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            self.data += self.sock.recv(65536)
        self.data = self.data.split(b"\r\n\r\n", 1)[1]
        self.sock.setblocking(False)

    def updates(self):
        """Ids of the orders that were told of since the last call."""
        self.data += take(self.sock)
        ids = []
        while len(self.data) >= 2:
            length, at = self.data[1] & 127, 2
            if length >= 126:
                at = 4 if length == 126 else 10
                if len(self.data) < at:
                    break
                length = int.from_bytes(self.data[2:at], "big")
            if len(self.data) < at + length:
                break
            kind, payload = self.data[0] & 15, self.data[at : at + length]
            self.data = self.data[at + length :]
            if kind == PING:
                self.sock.sendall(b"\x8a\x80\0\0\0\0")
            elif kind == TEXT:
                message = json.loads(payload)
                if message.get("event") == "order.updated":
                    ids.append(message["data"]["id"])
        return ids


class Http:
    def __init__(self, port, token):
        self.sock = connect(port)
        self.sock.setblocking(False)
        self.token = token
        self.data = b""
        self.is_busy = False

    def place(self, order):
        body = json.dumps(order)
        head = f"POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
        self.sock.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.is_busy = True

    def answered(self):
        """The id of the order whose 202 came, or None."""
        self.data += take(self.sock)
        if b"\r\n\r\n" not in self.data:
            return None
        head, rest = self.data.split(b"\r\n\r\n", 1)
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1])
        if len(rest) < length:
            return None
        if not head.startswith(b"HTTP/1.1 202"):
            raise SystemExit(f"not placed: {head!r} {rest!r}")
        self.data, self.is_busy = rest[length:], False
        return json.loads(rest[:length])["data"]["id"]


def main():
    port, token, count, market, outcome = int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6])
    socket_ = WebSocket(port, token)
    connections = [Http(port, token) for _ in range(CONNECTIONS)]
    answered, told, early, placed = set(), set(), 0, 0
    deadline = time.monotonic() + DEADLINE_S
    while len(answered) < count or len(told) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(answered)} answers and {len(told)} updates of {count} in time")
        for connection in connections:
            if not connection.is_busy and placed < count:
                price = 1 + placed % 40
                connection.place({"market_id": market, "outcome_id": outcome, "side": 1, "price": price, "quantity": 1})
                placed += 1
        select.select([socket_.sock] + [each.sock for each in connections], [], [], 1)
        updates = socket_.updates()
        for connection in connections:
            order = connection.answered()
            if order is not None:
                answered.add(order)
        early += sum(1 for order in updates if order not in answered and order not in told)
        told.update(updates)
    print(json.dumps({"orders": len(answered), "updates": len(told), "early": early}))


main()
