"""Decodes and encodes every golden vector with docs/sbe/exchange_sbe.py. Arguments: the module's folder and the vectors."""
import json
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import exchange_sbe as sbe  # noqa: E402


def snake(name):
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def words(kind):
    return {name: number for name, number in kind.__members__.items()}


CHOICES = [kind for kind in vars(sbe).values() if isinstance(kind, type) and issubclass(kind, sbe.IntEnum)
           and kind is not sbe.IntEnum]
TYPES = {snake(kind.__name__)[1:]: kind for kind in CHOICES}
TYPES["role"] = sbe.Role
TYPES.update(dict.fromkeys(("enabled", "implied", "all_markets", "snapshot"), sbe.Switch))


def number(name, value, message):
    """A vector's value as the module has it."""
    if value is None:
        return None
    if isinstance(value, list):
        return sum(sbe.OrderFlags[snake(word).upper()] for word in value)
    if value.lstrip("-").isdigit():
        return int(value)
    own = {("status", "MarketUpdated"): sbe.MarketStatus, ("reason", "Shutdown"): sbe.ShutdownReason}
    kind = own.get((name, message)) or TYPES.get(name, sbe.OrderStatus)
    return int(kind[snake(value).upper()])


def fields(values, message):
    return {snake(name): number(snake(name), value, message) for name, value in values.items()}


checked = 0
for vector in json.load(open(sys.argv[2])):
    data, name = bytes.fromhex(vector["hex"]), vector["template"]
    [(header, message)] = sbe.decode(data)
    wanted = {**fields(vector["fields"], name), **{snake(text): value for text, value in vector["texts"].items()}}
    found = message._asdict()
    for group, entries in vector["groups"].items():
        assert [each._asdict() for each in found.pop(snake(group))] == [fields(entry, name) for entry in entries], vector
    assert found == wanted, (vector, found)
    head = {key: None if value is None else int(value) for key, value in vector["header"].items()}
    assert (header.id, header.index, header.rate_remaining) == (head["id"], head["index"], head["rateRemaining"])
    assert header.version == vector["version"]
    if vector["version"] == sbe.SCHEMA_VERSION and vector["name"] != "a block cut short":
        assert sbe.encode(message, head["id"], head["index"], head["rateRemaining"]) == data, vector
    for length in range(1, len(data)):
        try:
            list(sbe.decode(data[:length]))
            raise SystemExit(f"{name} cut to {length} bytes is decoded")
        except ValueError:
            pass
    checked += 1
assert [m.price for _, m in sbe.decode(sbe.encode(sbe.PlaceOrder(1, 10, 2, sbe.Side.BUY, price=5000)) * 2)] == [5000] * 2
print(checked)
