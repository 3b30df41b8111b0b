"""A client of the public channels over Python's `websockets`: follows books and trades, holds what comes against what
REST says, and tells of every difference. Reads the interface as anybody would: nothing of the server's own is here.

    follower.py http://HOST:PORT/api/v1 MARKET_ID...

Prints a JSON line {"messages": N} now and then. A line on stdin ends it: it compares everything once more, prints a
JSON line of counts and differences, and exits.
"""

import asyncio
import collections
import json
import random
import sys
import urllib.request

import websockets

KEPT_CHANGES = 4096
KEPT_DIFFERENCES = 20
MESSAGES_PER_LINE = 500
# REST is asked once so often: what is compared grows with what happens, and not with the time that it takes.
MESSAGES_PER_COMPARISON = 10


class Book:
    """One outcome's book, with what its last changes found, so that they can be taken back."""

    def __init__(self, snapshot):
        self.sequence = snapshot["sequence"]
        self.sides = {"bids": dict(snapshot["bids"]), "asks": dict(snapshot["asks"])}
        self.undos = collections.deque(maxlen=KEPT_CHANGES)
        self.awaited = {}

    def update(self, changes):
        undo = []
        for side, levels in self.sides.items():
            for price, quantity in changes[side]:
                undo.append((side, price, levels.get(price, 0)))
                set_level(levels, price, quantity)
        self.undos.append(undo)

    def at(self, sequence):
        """The levels as REST has them, as of a sequence; None where that is too long ago."""
        back = self.sequence - sequence
        if back > len(self.undos):
            return None
        sides = {side: dict(levels) for side, levels in self.sides.items()}
        for i in range(1, back + 1):
            for side, price, quantity in reversed(self.undos[-i]):
                set_level(sides[side], price, quantity)
        return {
            "bids": [list(level) for level in sorted(sides["bids"].items(), reverse=True)],
            "asks": [list(level) for level in sorted(sides["asks"].items())],
        }


def set_level(levels, price, quantity):
    if quantity == 0:
        levels.pop(price, None)
    else:
        levels[price] = quantity


class Follower:
    def __init__(self, base, market_ids):
        self.base = base
        self.market_ids = market_ids
        self.books = {}
        self.trades = {}
        self.acknowledged = {}
        self.messages = self.updates = self.compared = self.missed = self.heartbeats = 0
        self.next_comparison = 0
        self.is_due = asyncio.Event()
        self.states = set()
        self.differences = []
        self.difference_count = 0

    def differ(self, text):
        self.difference_count += 1
        if len(self.differences) < KEPT_DIFFERENCES:
            self.differences.append(text)

    # ------------------------------------------------------------ the WebSocket

    async def ask(self, socket, operation):
        operation["id"] = number = len(self.acknowledged) + 1
        self.acknowledged[number] = answer = asyncio.get_running_loop().create_future()
        await socket.send(json.dumps(operation))
        return await answer

    def receive(self, text):
        message = json.loads(text)
        event = message.get("event")
        if event == "book.updated":
            self.take_update(message["sequence"], message["data"])
        elif event == "trade.created":
            self.take_trade(message["sequence"], message["data"])
        elif event == "book.snapshot":
            self.take_snapshot(message["sequence"], message["data"])
        elif event == "heartbeat":
            self.take_heartbeat(message["data"]["subscriptions"])
        elif event is None:
            self.take_answer(message)
        else:
            self.differ(f"an event {event}, which nobody asked for")
        self.messages += 1
        if self.messages >= self.next_comparison:
            self.is_due.set()
        if self.messages % MESSAGES_PER_LINE == 0:
            print(json.dumps({"messages": self.messages}), flush=True)

    def take_answer(self, message):
        if message["code"] != 0:
            self.differ(f"refused: {message}")
        else:
            # Before any later message: the next one may be a trade.
            for subscription in message["data"].get("subscriptions", []):
                if subscription["channel"] == "trades":
                    self.trades[subscription["market_id"]] = [subscription["sequence"], []]
        self.acknowledged[message["id"]].set_result(message)

    def take_snapshot(self, sequence, data):
        if sequence != data["sequence"]:
            self.differ(f"a snapshot {sequence} of the book at {data['sequence']}")
        self.books[(data["market_id"], data["outcome_id"])] = Book(data)

    def take_update(self, sequence, data):
        key = (data["market_id"], data["outcome_id"])
        book = self.books.get(key)
        if book is None:
            self.differ(f"an update of {key} without a snapshot")
            return
        if sequence != book.sequence + 1:
            self.differ(f"{key}: {sequence} came after {book.sequence}")
        book.sequence = sequence
        book.update(data)
        self.updates += 1
        for rest in book.awaited.pop(sequence, ()):
            self.compare_now(key, book, rest)

    def take_trade(self, sequence, data):
        followed = self.trades[data["market_id"]]
        if sequence != followed[0] + 1:
            self.differ(f"trades of {data['market_id']}: {sequence} came after {followed[0]}")
        followed[0] = sequence
        followed[1].append(data)

    def take_heartbeat(self, subscriptions):
        self.heartbeats += 1
        for each in subscriptions:
            if each["channel"] == "trades":
                own = self.trades[each["market_id"]][0]
            else:
                own = self.books[(each["market_id"], each["outcome_id"])].sequence
            if own != each["sequence"]:
                self.differ(f"a heartbeat says {each}, {own} came last")

    # ------------------------------------------------------------ REST

    def fetch(self, path):
        with urllib.request.urlopen(self.base + path) as response:
            return json.load(response)["data"]

    async def get(self, path):
        return await asyncio.to_thread(self.fetch, path)

    def compare(self, key, rest):
        book = self.books[key]
        if rest["sequence"] > book.sequence:
            book.awaited.setdefault(rest["sequence"], []).append(rest)
        else:
            self.compare_now(key, book, rest)

    def compare_now(self, key, book, rest):
        own = book.at(rest["sequence"])
        if own is None:
            self.missed += 1
            return
        self.compared += 1
        self.states.add((key, rest["sequence"]))
        theirs = {"bids": rest["bids"], "asks": rest["asks"]}
        if own != theirs:
            self.differ(f"{key} at {rest['sequence']}: followed {own}, REST {theirs}")

    async def compare_market(self, market_id):
        for book in (await self.get(f"/markets/{market_id}/orderbook"))["outcomes"]:
            self.compare((market_id, book["outcome_id"]), book)

    async def poll(self):
        """Compares at random, one request at a time, until it is canceled."""
        while True:
            self.next_comparison = self.messages + MESSAGES_PER_COMPARISON
            self.is_due.clear()
            await self.is_due.wait()
            market_id, outcome_id = key = random.choice(list(self.books))
            if random.random() < 0.2:
                await self.compare_market(market_id)
            else:
                self.compare(key, await self.get(f"/orderbook/{market_id}/{outcome_id}"))

    async def compare_all(self):
        for market_id in self.market_ids:
            await self.compare_market(market_id)
            await self.compare_trades(market_id)
        for key, book in self.books.items():
            for sequence in book.awaited:
                self.differ(f"{key}: REST had {sequence}, {book.sequence} came last")

    async def compare_trades(self, market_id):
        followed = self.trades[market_id][1]
        listed = []
        cursor = ""
        while cursor is not None and len(listed) < len(followed):
            page = await self.get(f"/markets/{market_id}/trades?limit=200{cursor and '&cursor=' + cursor}")
            listed += page["items"]
            cursor = page["next_cursor"]
        # Trades from before the subscription may stand behind.
        if listed[: len(followed)] != followed[::-1]:
            self.differ(f"trades of {market_id}: REST has others")

    # ------------------------------------------------------------ all of it

    async def run(self):
        async with websockets.connect(self.base.replace("http", "ws", 1) + "/ws") as socket:
            reading = asyncio.create_task(self.read(socket))
            for channel in ("trades", "book"):
                await self.ask(socket, {"op": "subscribe", "channel": channel, "market_ids": self.market_ids})
            await self.ask(socket, {"op": "ping"})
            print(json.dumps({"messages": self.messages}), flush=True)
            polling = asyncio.create_task(self.poll())
            told = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            await asyncio.wait([told, polling, reading], return_when=asyncio.FIRST_COMPLETED)
            polling.cancel()
            [failure] = await asyncio.gather(polling, return_exceptions=True)
            if not isinstance(failure, asyncio.CancelledError):
                self.differ(f"REST: {failure!r}")
            if not reading.done():
                await self.ask(socket, {"op": "ping"})
                await self.compare_all()
            reading.cancel()
        counts = ("messages", "updates", "compared", "missed", "heartbeats", "difference_count", "differences")
        result = {name: getattr(self, name) for name in counts}
        result["states"] = len(self.states)
        result["trades"] = sum(len(trades) for _, trades in self.trades.values())
        print(json.dumps({"result": result}), flush=True)

    async def read(self, socket):
        try:
            async for text in socket:
                self.receive(text)
            self.differ("the connection was closed")
        except Exception as error:  # It ends the run, which reports it.
            self.differ(repr(error))


async def main(base, market_ids):
    await Follower(base, [int(each) for each in market_ids]).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
