"""Orders and market data of the exchange in binary: messages, decode and encode. Python 3.8 or later, no dependency.

Generated from sbe.xml by "npm run sbe"; docs/sbe.md describes the protocol. Numbers of enumerations are ints, equal to
the members of the classes below: a later version of the exchange may send others. None stands for null.
"""
import struct
from enum import IntEnum, IntFlag
from typing import Iterator, NamedTuple, Optional, Tuple


SCHEMA_ID = 1
SCHEMA_VERSION = 2


class Side(IntEnum):
    """side"""
    BUY = 1
    SELL = 2


class OrderType(IntEnum):
    """limit where null"""
    LIMIT = 0
    MARKET = 1


class TimeInForce(IntEnum):
    """where null gtc, or ioc of a market order"""
    GTC = 0
    GTD = 1
    IOC = 2
    FOK = 3


class OrderTerms(IntEnum):
    """order type and time in force together: type * 16 + time in force"""
    LIMIT_GTC = 0
    LIMIT_GTD = 1
    LIMIT_IOC = 2
    LIMIT_FOK = 3
    MARKET_IOC = 18
    MARKET_FOK = 19


class SelfTradePrevention(IntEnum):
    """cancelTaker where null"""
    CANCEL_TAKER = 0
    CANCEL_MAKER = 1
    CANCEL_BOTH = 2
    DECREMENT = 3


class OrderStatus(IntEnum):
    """numbers as in the engine's records"""
    QUEUED = 2
    OPEN = 3
    PARTIALLY_FILLED = 4
    FILLED = 5
    CANCELED = 6
    EXPIRED = 7
    REJECTED = 8


class Reason(IntEnum):
    """of canceled, expired and rejected orders"""
    NONE = 0
    USER = 1
    POST_ONLY_WOULD_CROSS = 2
    FOK_UNFILLABLE = 3
    IOC_REMAINDER = 4
    SELF_TRADE = 5
    MARKET_CLOSED = 6
    MARKET_HALTED = 7
    CANCEL_ON_DISCONNECT = 8
    BY_OPERATOR = 9
    TOO_LATE = 10
    EXPIRED = 11
    CANCEL_AFTER = 12


class MatchType(IntEnum):
    DIRECT = 0
    MINT = 1
    MERGE = 2


class ShutdownReason(IntEnum):
    """restart: the same server comes back; standby: another one goes on"""
    RESTART = 0
    STANDBY = 1


class Role(IntEnum):
    MAKER = 0
    TAKER = 1


class MarketStatus(IntEnum):
    PROPOSED = 0
    OPEN = 1
    HALTED = 2
    CLOSED = 3
    RESOLVED = 4
    VOIDED = 5
    REJECTED = 6


class Channel(IntEnum):
    BOOK = 0
    IMPLIED_BOOK = 1
    TRADES = 2
    TICKER = 3
    MARKETS = 4


class Switch(IntEnum):
    OFF = 0
    ON = 1


class OrderFlags(IntFlag):
    POST_ONLY = 1
    TIMESTAMPS = 2


class Quote(NamedTuple):
    """An entry of ReplaceQuotes.quotes."""

    outcome_id: int
    price: int
    quantity: int
    side: int


class SubscribedMarket(NamedTuple):
    """An entry of Subscribe.markets, Unsubscribe.markets."""

    market_id: int


class CanceledOrder(NamedTuple):
    """An entry of OrdersCanceled.orders."""

    order_id: int


class Subscribed(NamedTuple):
    """An entry of Subscriptions.subscriptions, Heartbeat.subscriptions."""

    sequence: int
    channel: int
    market_id: Optional[int] = None
    outcome_id: Optional[int] = None


class Fill(NamedTuple):
    """An entry of OrderUpdated.fills."""

    fill_id: int
    match_id: int
    fee: int
    rebate: int
    created_at: int
    quantity: int
    price: int
    role: int
    match_type: int


class Level(NamedTuple):
    """An entry of BookSnapshot.bids, BookSnapshot.asks, BookSnapshot.impliedBids, BookSnapshot.impliedAsks, BookUpdated.bids, BookUpdated.asks, BookUpdated.impliedBids, BookUpdated.impliedAsks."""

    quantity: int
    price: int


class PlaceOrder(NamedTuple):
    """Order.place. Words 0..3 are words 3..6 of the engine's command; the two times are the values of its doubles 6 and 7. clientOrderId n and the text of n's decimal digits name the same order."""

    outcome_id: int
    quantity: int
    market_id: int
    side: int
    price: Optional[int] = None
    expires_at: Optional[int] = None
    valid_until: Optional[int] = None
    client_order_id: Optional[int] = None
    order_type: Optional[int] = None
    time_in_force: Optional[int] = None
    self_trade_prevention: Optional[int] = None
    flags: int = 0
    client_order_text: Optional[str] = None
    builder_code: Optional[str] = None


class CancelOrder(NamedTuple):
    """Order.cancel. Exactly one of the three names the order."""

    order_id: Optional[int] = None
    client_order_id: Optional[int] = None
    client_order_text: Optional[str] = None


class AmendOrder(NamedTuple):
    """Order.amend. quantity: the new total; null leaves a field as it is."""

    order_id: int
    valid_until: Optional[int] = None
    price: Optional[int] = None
    quantity: Optional[int] = None


class CancelAll(NamedTuple):
    """Order.cancel_all. Null filters match every order; side null: both."""

    client_order_id: Optional[int] = None
    market_id: Optional[int] = None
    outcome_id: Optional[int] = None
    side: Optional[int] = None
    client_order_text: Optional[str] = None


class CancelAfter(NamedTuple):
    """Order.cancel_after. 1000..300000, 0 ends the timer."""

    timeout: int


class CancelOnDisconnect(NamedTuple):
    """Cancel_on_disconnect."""

    enabled: int


class ReplaceQuotes(NamedTuple):
    """Quotes.replace. Up to 100 quotes."""

    market_id: int
    expires_at: Optional[int] = None
    valid_until: Optional[int] = None
    quotes: Tuple[Quote, ...] = ()
    builder_code: Optional[str] = None


class Batch(NamedTuple):
    """Order.batch. The next count messages of the same frame (1..50 of templates 1..3) are its operations."""

    count: int


class Subscribe(NamedTuple):
    """Subscribe. No markets: all of them, for the channel markets alone."""

    channel: int
    outcome_id: Optional[int] = None
    markets: Tuple[SubscribedMarket, ...] = ()


class Unsubscribe(NamedTuple):
    """Unsubscribe."""

    channel: int
    outcome_id: Optional[int] = None
    markets: Tuple[SubscribedMarket, ...] = ()


class Resume(NamedTuple):
    """Resume."""

    sequence: int


class Ping(NamedTuple):
    """Ping."""


class Authenticate(NamedTuple):
    """Auth."""

    token: Optional[str] = None


class Rejected(NamedTuple):
    """An error: the envelope's code and msg, and trace_id where the code is a 5xx's."""

    code: int
    retry_after: Optional[int] = None
    rate_limit: Optional[int] = None
    rate_reset: Optional[int] = None
    message: Optional[str] = None
    trace_id: Optional[str] = None


class OrderAccepted(NamedTuple):
    """Response to PlaceOrder, CancelOrder, AmendOrder, and of each quote: the order at that moment."""

    order_id: int
    updated_at: int
    created_at: int
    market_id: int
    outcome_id: int
    quantity: int
    remaining: int
    side: int
    order_terms: int
    status: int
    reason: int
    expires_at: Optional[int] = None
    client_order_id: Optional[int] = None
    price: Optional[int] = None
    self_trade_prevention: Optional[int] = None
    flags: int = 0
    client_order_text: Optional[str] = None
    builder_code: Optional[str] = None


class Done(NamedTuple):
    """The last response to a Batch or ReplaceQuotes: count results were sent, of which rejected failed."""

    count: int
    rejected: int


class OrdersCanceled(NamedTuple):
    """Response to CancelAll; several messages where there are more than 60000."""

    orders: Tuple[CanceledOrder, ...] = ()


class CancelAfterSet(NamedTuple):
    """Response to CancelAfter."""

    timeout: int
    fires_at: Optional[int] = None


class CancelOnDisconnectSet(NamedTuple):
    """Response to CancelOnDisconnect."""

    enabled: int


class Subscriptions(NamedTuple):
    """Response to Subscribe and Unsubscribe."""

    subscriptions: Tuple[Subscribed, ...] = ()


class Resumed(NamedTuple):
    """Response to Resume."""

    after: int
    last: int


class Pong(NamedTuple):
    """Response to Ping."""

    now: int


class Authenticated(NamedTuple):
    """Response to Authenticate."""

    user_id: int
    expires_at: Optional[int] = None


class OrderTimestamps(NamedTuple):
    """Behind the OrderAccepted or OrderUpdated of an order placed with the flag timestamps, with the same id."""

    order_id: int
    received: int
    matched: int
    durable: int
    sent: int


class OrderUpdated(NamedTuple):
    """Order.updated; updatedAt is also the ts of the JSON frame."""

    order_id: int
    updated_at: int
    created_at: int
    market_id: int
    outcome_id: int
    quantity: int
    remaining: int
    side: int
    order_terms: int
    status: int
    reason: int
    expires_at: Optional[int] = None
    client_order_id: Optional[int] = None
    price: Optional[int] = None
    self_trade_prevention: Optional[int] = None
    flags: int = 0
    fills: Tuple[Fill, ...] = ()
    client_order_text: Optional[str] = None
    builder_code: Optional[str] = None


class BalanceUpdated(NamedTuple):
    """Balance.updated; id: the last OrderUpdated that it reflects."""

    ts: int
    available: int
    held: int
    total: int


class PositionUpdated(NamedTuple):
    """Position.updated; average_price = cost / quantity / 100, unrealized_pnl = marketValue - cost."""

    ts: int
    cost: int
    realized_pnl: int
    quantity: int
    held: int
    market_id: int
    outcome_id: int
    market_value: Optional[int] = None


class BookSnapshot(NamedTuple):
    """Book.snapshot; best level first; bookTs: ts of the REST book."""

    ts: int
    book_ts: int
    market_id: int
    outcome_id: int
    implied: int
    bids: Tuple[Level, ...] = ()
    asks: Tuple[Level, ...] = ()
    implied_bids: Tuple[Level, ...] = ()
    implied_asks: Tuple[Level, ...] = ()


class BookUpdated(NamedTuple):
    """Book.updated; quantity: the level's new one, 0 removes it."""

    ts: int
    market_id: int
    outcome_id: int
    implied: int
    bids: Tuple[Level, ...] = ()
    asks: Tuple[Level, ...] = ()
    implied_bids: Tuple[Level, ...] = ()
    implied_asks: Tuple[Level, ...] = ()


class TradeCreated(NamedTuple):
    """Trade.created; created_at = ts."""

    ts: int
    match_id: int
    market_id: int
    outcome_id: int
    quantity: int
    price: int
    side: int
    match_type: int


class TickerUpdated(NamedTuple):
    """Ticker.updated; snapshot: the state at the start of a subscription, under the sequence of the message that may have brought it before."""

    ts: int
    volume: int
    market_id: int
    outcome_id: int
    snapshot: int
    last_price: Optional[int] = None
    best_bid: Optional[int] = None
    best_ask: Optional[int] = None
    implied_bid: Optional[int] = None
    implied_ask: Optional[int] = None


class MarketUpdated(NamedTuple):
    """Market.updated; market: the market as JSON, as in REST. allMarkets: the sequence is that of the channel without a market; snapshot: as in TickerUpdated."""

    ts: int
    market_id: int
    status: int
    channel: int
    all_markets: int
    snapshot: int
    market: Optional[str] = None


class Heartbeat(NamedTuple):
    """Heartbeat; orders: the last OrderUpdated, null where none are sent."""

    ts: int
    orders: Optional[int] = None
    subscriptions: Tuple[Subscribed, ...] = ()


class Shutdown(NamedTuple):
    """System.shutdown, with where to connect next (null: as before); the connection closes with 1001."""

    ts: int
    reason: int
    url: Optional[str] = None


class Header(NamedTuple):
    """What precedes a message. id: the request's number in responses, the sequence in events."""

    template_id: int
    version: int
    index: Optional[int]
    rate_remaining: Optional[int]
    id: Optional[int]


_NULL_B = 2**8 - 1
_NULL_H = 2**16 - 1
_NULL_I = 2**32 - 1
_NULL_Q = 2**64 - 1
_NULL_q = -(2**63)
_HEADER = struct.Struct("<HHHHIHHQ")
_DIMENSION = struct.Struct("<HH")


class _Layout:
    def __init__(self, form, length, entry, fields):
        self.struct = struct.Struct(form)
        self.entry = entry
        self.names = [name for name, _, _ in fields]
        self.nulls = [null if optional else None for _, null, optional in fields]
        self.absent = self.struct.pack(*[null for _, null, _ in fields])
        self.required = [(name, null) for name, null, optional in fields if not optional and null != 0]
        assert self.struct.size == length

    def values(self, data, start, length):
        size = self.struct.size
        raw = bytes(data[start:start + min(length, size)])
        fields = self.struct.unpack(raw + self.absent[len(raw):])
        found = {name: None if value == null else value for name, value, null in zip(self.names, fields, self.nulls)}
        if length < size:
            for name, null in self.required:
                if found[name] == null:
                    found[name] = None
        return found

    def pack(self, value):
        given = [getattr(value, name) for name in self.names]
        return self.struct.pack(*[null if each is None and null is not None else each
                                  for each, null in zip(given, self.nulls)])


_LAYOUTS = {
    "PlaceOrder": _Layout("<IIIIQQQBBBBB1x2x", 48, None, (
        ("outcome_id", _NULL_I, False),
        ("price", _NULL_I, True),
        ("quantity", _NULL_I, False),
        ("market_id", _NULL_I, False),
        ("expires_at", _NULL_Q, True),
        ("valid_until", _NULL_Q, True),
        ("client_order_id", _NULL_Q, True),
        ("side", _NULL_B, False),
        ("order_type", _NULL_B, True),
        ("time_in_force", _NULL_B, True),
        ("self_trade_prevention", _NULL_B, True),
        ("flags", 0, False),
    )),
    "CancelOrder": _Layout("<QQ", 16, None, (
        ("order_id", _NULL_Q, True),
        ("client_order_id", _NULL_Q, True),
    )),
    "AmendOrder": _Layout("<QQII", 24, None, (
        ("order_id", _NULL_Q, False),
        ("valid_until", _NULL_Q, True),
        ("price", _NULL_I, True),
        ("quantity", _NULL_I, True),
    )),
    "CancelAll": _Layout("<QIIB1x2x4x", 24, None, (
        ("client_order_id", _NULL_Q, True),
        ("market_id", _NULL_I, True),
        ("outcome_id", _NULL_I, True),
        ("side", _NULL_B, True),
    )),
    "CancelAfter": _Layout("<I4x", 8, None, (
        ("timeout", _NULL_I, False),
    )),
    "CancelOnDisconnect": _Layout("<B1x2x4x", 8, None, (
        ("enabled", _NULL_B, False),
    )),
    "ReplaceQuotes": _Layout("<QQI4x", 24, None, (
        ("expires_at", _NULL_Q, True),
        ("valid_until", _NULL_Q, True),
        ("market_id", _NULL_I, False),
    )),
    "Quote": _Layout("<IIIB1x2x", 16, Quote, (
        ("outcome_id", _NULL_I, False),
        ("price", _NULL_I, False),
        ("quantity", _NULL_I, False),
        ("side", _NULL_B, False),
    )),
    "Batch": _Layout("<H2x4x", 8, None, (
        ("count", _NULL_H, False),
    )),
    "Subscription": _Layout("<B1x2xI", 8, None, (
        ("channel", _NULL_B, False),
        ("outcome_id", _NULL_I, True),
    )),
    "SubscribedMarket": _Layout("<I", 4, SubscribedMarket, (
        ("market_id", _NULL_I, False),
    )),
    "Resume": _Layout("<Q", 8, None, (
        ("sequence", _NULL_Q, False),
    )),
    "Rejected": _Layout("<IIII", 16, None, (
        ("code", _NULL_I, False),
        ("retry_after", _NULL_I, True),
        ("rate_limit", _NULL_I, True),
        ("rate_reset", _NULL_I, True),
    )),
    "Order": _Layout("<QQQQQIIIIHBBBBBB", 64, None, (
        ("order_id", _NULL_Q, False),
        ("updated_at", _NULL_Q, False),
        ("created_at", _NULL_Q, False),
        ("expires_at", _NULL_Q, True),
        ("client_order_id", _NULL_Q, True),
        ("market_id", _NULL_I, False),
        ("outcome_id", _NULL_I, False),
        ("quantity", _NULL_I, False),
        ("remaining", _NULL_I, False),
        ("price", _NULL_H, True),
        ("side", _NULL_B, False),
        ("order_terms", _NULL_B, False),
        ("self_trade_prevention", _NULL_B, True),
        ("status", _NULL_B, False),
        ("reason", _NULL_B, False),
        ("flags", 0, False),
    )),
    "Done": _Layout("<II", 8, None, (
        ("count", _NULL_I, False),
        ("rejected", _NULL_I, False),
    )),
    "CanceledOrder": _Layout("<Q", 8, CanceledOrder, (
        ("order_id", _NULL_Q, False),
    )),
    "CancelAfterSet": _Layout("<QI4x", 16, None, (
        ("fires_at", _NULL_Q, True),
        ("timeout", _NULL_I, False),
    )),
    "CancelOnDisconnectSet": _Layout("<B1x2x4x", 8, None, (
        ("enabled", _NULL_B, False),
    )),
    "Subscribed": _Layout("<QIIB1x2x", 20, Subscribed, (
        ("sequence", _NULL_Q, False),
        ("market_id", _NULL_I, True),
        ("outcome_id", _NULL_I, True),
        ("channel", _NULL_B, False),
    )),
    "Resumed": _Layout("<QQ", 16, None, (
        ("after", _NULL_Q, False),
        ("last", _NULL_Q, False),
    )),
    "Pong": _Layout("<Q", 8, None, (
        ("now", _NULL_Q, False),
    )),
    "Authenticated": _Layout("<QQ", 16, None, (
        ("user_id", _NULL_Q, False),
        ("expires_at", _NULL_Q, True),
    )),
    "OrderTimestamps": _Layout("<QQQQQ", 40, None, (
        ("order_id", _NULL_Q, False),
        ("received", _NULL_Q, False),
        ("matched", _NULL_Q, False),
        ("durable", _NULL_Q, False),
        ("sent", _NULL_Q, False),
    )),
    "Fill": _Layout("<QQqqQIHBB", 48, Fill, (
        ("fill_id", _NULL_Q, False),
        ("match_id", _NULL_Q, False),
        ("fee", _NULL_q, False),
        ("rebate", _NULL_q, False),
        ("created_at", _NULL_Q, False),
        ("quantity", _NULL_I, False),
        ("price", _NULL_H, False),
        ("role", _NULL_B, False),
        ("match_type", _NULL_B, False),
    )),
    "BalanceUpdated": _Layout("<Qqqq", 32, None, (
        ("ts", _NULL_Q, False),
        ("available", _NULL_q, False),
        ("held", _NULL_q, False),
        ("total", _NULL_q, False),
    )),
    "PositionUpdated": _Layout("<QqqqQQII", 56, None, (
        ("ts", _NULL_Q, False),
        ("cost", _NULL_q, False),
        ("realized_pnl", _NULL_q, False),
        ("market_value", _NULL_q, True),
        ("quantity", _NULL_Q, False),
        ("held", _NULL_Q, False),
        ("market_id", _NULL_I, False),
        ("outcome_id", _NULL_I, False),
    )),
    "BookSnapshot": _Layout("<QQIIB1x2x4x", 32, None, (
        ("ts", _NULL_Q, False),
        ("book_ts", _NULL_Q, False),
        ("market_id", _NULL_I, False),
        ("outcome_id", _NULL_I, False),
        ("implied", _NULL_B, False),
    )),
    "Level": _Layout("<QH2x", 12, Level, (
        ("quantity", _NULL_Q, False),
        ("price", _NULL_H, False),
    )),
    "BookUpdated": _Layout("<QIIB1x2x4x", 24, None, (
        ("ts", _NULL_Q, False),
        ("market_id", _NULL_I, False),
        ("outcome_id", _NULL_I, False),
        ("implied", _NULL_B, False),
    )),
    "TradeCreated": _Layout("<QQIIIHBB", 32, None, (
        ("ts", _NULL_Q, False),
        ("match_id", _NULL_Q, False),
        ("market_id", _NULL_I, False),
        ("outcome_id", _NULL_I, False),
        ("quantity", _NULL_I, False),
        ("price", _NULL_H, False),
        ("side", _NULL_B, False),
        ("match_type", _NULL_B, False),
    )),
    "TickerUpdated": _Layout("<QQIIHHHHHB1x4x", 40, None, (
        ("ts", _NULL_Q, False),
        ("volume", _NULL_Q, False),
        ("market_id", _NULL_I, False),
        ("outcome_id", _NULL_I, False),
        ("last_price", _NULL_H, True),
        ("best_bid", _NULL_H, True),
        ("best_ask", _NULL_H, True),
        ("implied_bid", _NULL_H, True),
        ("implied_ask", _NULL_H, True),
        ("snapshot", _NULL_B, False),
    )),
    "MarketUpdated": _Layout("<QIBBBB", 16, None, (
        ("ts", _NULL_Q, False),
        ("market_id", _NULL_I, False),
        ("status", _NULL_B, False),
        ("channel", _NULL_B, False),
        ("all_markets", _NULL_B, False),
        ("snapshot", _NULL_B, False),
    )),
    "Heartbeat": _Layout("<QQ", 16, None, (
        ("ts", _NULL_Q, False),
        ("orders", _NULL_Q, True),
    )),
    "Shutdown": _Layout("<QB1x2x4x", 16, None, (
        ("ts", _NULL_Q, False),
        ("reason", _NULL_B, False),
    )),
}


_MESSAGES = {
    1: (PlaceOrder, "PlaceOrder", (), (("client_order_text", 1, 1), ("builder_code", 1, 1),)),
    2: (CancelOrder, "CancelOrder", (), (("client_order_text", 1, 1),)),
    3: (AmendOrder, "AmendOrder", (), ()),
    4: (CancelAll, "CancelAll", (), (("client_order_text", 1, 1),)),
    5: (CancelAfter, "CancelAfter", (), ()),
    6: (CancelOnDisconnect, "CancelOnDisconnect", (), ()),
    7: (ReplaceQuotes, "ReplaceQuotes", (("quotes", "Quote", 1),), (("builder_code", 1, 1),)),
    8: (Batch, "Batch", (), ()),
    9: (Subscribe, "Subscription", (("markets", "SubscribedMarket", 1),), ()),
    10: (Unsubscribe, "Subscription", (("markets", "SubscribedMarket", 1),), ()),
    11: (Resume, "Resume", (), ()),
    12: (Ping, None, (), ()),
    13: (Authenticate, None, (), (("token", 2, 1),)),
    101: (Rejected, "Rejected", (), (("message", 2, 1), ("trace_id", 1, 1),)),
    102: (OrderAccepted, "Order", (), (("client_order_text", 1, 1), ("builder_code", 1, 1),)),
    103: (Done, "Done", (), ()),
    104: (OrdersCanceled, None, (("orders", "CanceledOrder", 1),), ()),
    105: (CancelAfterSet, "CancelAfterSet", (), ()),
    106: (CancelOnDisconnectSet, "CancelOnDisconnectSet", (), ()),
    107: (Subscriptions, None, (("subscriptions", "Subscribed", 1),), ()),
    108: (Resumed, "Resumed", (), ()),
    109: (Pong, "Pong", (), ()),
    110: (Authenticated, "Authenticated", (), ()),
    111: (OrderTimestamps, "OrderTimestamps", (), ()),
    201: (OrderUpdated, "Order", (("fills", "Fill", 1),), (("client_order_text", 1, 1), ("builder_code", 1, 1),)),
    202: (BalanceUpdated, "BalanceUpdated", (), ()),
    203: (PositionUpdated, "PositionUpdated", (), ()),
    211: (BookSnapshot, "BookSnapshot", (("bids", "Level", 1), ("asks", "Level", 1), ("implied_bids", "Level", 1), ("implied_asks", "Level", 1),), ()),
    212: (BookUpdated, "BookUpdated", (("bids", "Level", 1), ("asks", "Level", 1), ("implied_bids", "Level", 1), ("implied_asks", "Level", 1),), ()),
    213: (TradeCreated, "TradeCreated", (), ()),
    214: (TickerUpdated, "TickerUpdated", (), ()),
    215: (MarketUpdated, "MarketUpdated", (), (("market", 2, 1),)),
    216: (Heartbeat, "Heartbeat", (("subscriptions", "Subscribed", 1),), ()),
    217: (Shutdown, "Shutdown", (), (("url", 2, 2),)),
}


_TEMPLATES = {message: template for template, (message, _, _, _) in _MESSAGES.items()}


class _Body:
    def __init__(self, data, at, end):
        self.data, self.at, self.end = data, at, end

    def take(self, length):
        start = self.at
        if start + length > self.end:
            raise ValueError("a message ends in the middle of a field")
        self.at += length
        return start


def decode(frame) -> Iterator[Tuple[Header, tuple]]:
    """Yields the header and the message of each message of a frame, and skips templates that it doesn't know.

    Raises ValueError for bytes that are no such frame.
    """
    at = 0
    while at < len(frame):
        if at + _HEADER.size > len(frame):
            raise ValueError("the frame ends in the middle of a header")
        block, template, schema, version, length, index, rate, number = _HEADER.unpack_from(frame, at)
        end = at + length
        if length % 8 != 0 or length < _HEADER.size + block or end > len(frame):
            raise ValueError("the lengths of the frame don't add up")
        if schema == SCHEMA_ID and template in _MESSAGES:
            header = Header(template, version, None if index == _NULL_H else index,
                            None if rate == _NULL_H else rate, None if number == _NULL_Q else number)
            yield header, _message(template, version, block, _Body(frame, at + _HEADER.size, end))
        at = end


def _message(template, version, block, body):
    message, layout, groups, texts = _MESSAGES[template]
    start = body.take(block)
    fields = {} if layout is None else _LAYOUTS[layout].values(body.data, start, block)
    for name, entry, since in groups:
        if since > version:
            continue
        size, count = _DIMENSION.unpack_from(body.data, body.take(_DIMENSION.size))
        form = _LAYOUTS[entry]
        fields[name] = tuple(form.entry(**form.values(body.data, body.take(size), size)) for _ in range(count))
    for name, prefix, since in texts:
        if since > version:
            continue
        start = body.take(prefix)
        length = int.from_bytes(body.data[start:start + prefix], "little")
        start = body.take(length)
        fields[name] = bytes(body.data[start:start + length]).decode() or None
    return message(**fields)


def encode(message, id: Optional[int] = None, index: Optional[int] = None, rate_remaining: Optional[int] = None) -> bytes:
    """Returns the bytes of a message; a frame is one or more of them, joined."""
    template = _TEMPLATES[type(message)]
    _, layout, groups, texts = _MESSAGES[template]
    block = b"" if layout is None else _LAYOUTS[layout].pack(message)
    parts = [block]
    for name, entry, _ in groups:
        entries = getattr(message, name)
        form = _LAYOUTS[entry]
        parts.append(_DIMENSION.pack(form.struct.size, len(entries)))
        parts.extend(form.pack(each) for each in entries)
    for name, prefix, _ in texts:
        text = (getattr(message, name) or "").encode()
        parts.append(len(text).to_bytes(prefix, "little") + text)
    body = b"".join(parts)
    body += bytes(-len(body) % 8)
    return _HEADER.pack(len(block), template, SCHEMA_ID, SCHEMA_VERSION, _HEADER.size + len(body),
                        _NULL_H if index is None else index, _NULL_H if rate_remaining is None else rate_remaining,
                        _NULL_Q if id is None else id) + body
