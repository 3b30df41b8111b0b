/** The IP address of a client: which part of X-Forwarded-For counts, and one form for each address. */
import { SocketAddress } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createAddressReader, isAddressRange } from "../../server/http/client-address.ts";
import { MAX_CACHED_ADDRESSES } from "../../server/http/limits.ts";

/** Reads the address that rate limits count. */
function clientReader(trustedProxies: readonly string[]): (peer: string, forwardedFor: string) => string {
  const read = createAddressReader(trustedProxies);
  return (peer, forwardedFor) => read(peer, forwardedFor).client;
}

describe("an address has one form", () => {
  const read = clientReader([]);
  const cases: [string, string][] = [
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["0000:0000:0000:0000:0000:ffff:7f00:0001", "127.0.0.1"],
    ["2001:db8:0:1::5", "2001:db8:0:1::/64"],
    ["2001:0DB8:0000:0001:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"],
    ["2001:db8:0:2::5", "2001:db8:0:2::/64"],
    ["2001:db8::1:0:0:1", "2001:db8::/64"],
    ["1:2:3:4:5:6:7:8", "1:2:3:4::/64"],
    ["1:2:3:4:5:6:7::", "1:2:3:4::/64"],
    ["::1", "::/64"],
    ["::2:3:4:5:6:7:8", "0:2:3:4::/64"],
    ["2001:db8::192.0.2.7", "2001:db8::/64"],
    ["0:0:0:9::192.0.2.7", "0:0:0:9::/64"],
    ["", ""],
  ];
  test.for(cases)("an address has one form: %s is %s", ([address, expected]) => {
    expect(read(address, "")).toBe(expected);
    expect(read(address, "")).toBe(expected);
  });
});

test("all addresses of one /64, in any notation, are one client, and others are not", () => {
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
  // Addresses below 100:: may stand for IPv4 addresses.
  const prefix = fc.tuple(fc.integer({ min: 0x100, max: 0xffff }), group, group, group);
  const host = fc.tuple(group, group, group, group);
  const write = (groups: readonly number[], digits: number): string =>
    groups.map((value) => value.toString(16).padStart(digits, "0")).join(":");
  const read = clientReader([]);
  fc.assert(
    fc.property(prefix, host, host, prefix, (ours, a, b, theirs) => {
      const client = read(write([...ours, ...a], 4), "");
      const { address: shortest } = new SocketAddress({ address: write([...ours, ...b], 1), family: "ipv6" });
      expect(read(shortest, "")).toBe(client);
      expect(read(write([...theirs, ...a], 1), "") === client).toBe(write(ours, 1) === write(theirs, 1));
    }),
  );
});

test("without trusted proxies the header has no effect", () => {
  expect(clientReader([])("127.0.0.1", "192.0.2.7")).toBe("127.0.0.1");
});

describe("behind trusted proxies", () => {
  const read = clientReader(["10.0.0.0/8", "127.0.0.1", "2001:db8:ffff::/48"]);
  const cases: [string, string, string, string][] = [
    ["a stranger's header has no effect", "192.0.2.1", "192.0.2.7", "192.0.2.1"],
    ["a proxy's header names the client", "10.1.1.1", "192.0.2.7", "192.0.2.7"],
    ["a proxy's header over IPv6 does", "2001:db8:ffff::2", "2001:db8:7::1", "2001:db8:7::/64"],
    [
      "a proxy's header on a dual-stack socket does",
      "0000:0000:0000:0000:0000:ffff:7f00:0001",
      "192.0.2.7",
      "192.0.2.7",
    ],
    ["an entry may be IPv4 in IPv6", "127.0.0.1", "192.0.2.7, ::ffff:10.0.0.9", "192.0.2.7"],
    ["the right-most stranger counts", "10.1.1.1", "198.51.100.1, 192.0.2.7, 10.2.2.2,10.3.3.3", "192.0.2.7"],
    ["entries before it, which a stranger wrote, don't", "10.1.1.1", "10.9.9.9, junk, 192.0.2.7", "192.0.2.7"],
    ["of proxies only, the farthest one counts", "10.1.1.1", "10.3.3.3, 10.2.2.2", "10.3.3.3"],
    ["without a header, the proxy itself does", "10.1.1.1", "", "10.1.1.1"],
    ["junk ends at the last known hop", "10.1.1.1", "192.0.2.7, unknown, 10.2.2.2", "10.2.2.2"],
    ["junk from the nearest hop ends at the proxy", "10.1.1.1", "192.0.2.7, unknown", "10.1.1.1"],
    ["an empty entry is junk", "10.1.1.1", "192.0.2.7,", "10.1.1.1"],
    ["an empty first entry is junk", "10.1.1.1", ",10.2.2.2", "10.2.2.2"],
    ["a zone is junk", "10.1.1.1", "fe80::1%eth0", "10.1.1.1"],
    ["a port is junk", "10.1.1.1", "192.0.2.7:80", "10.1.1.1"],
  ];
  test.for(cases)("behind trusted proxies, the client's address: %s", ([, peer, header, expected]) => {
    expect(read(peer, header)).toBe(expected);
    expect(read(peer, header)).toBe(expected);
  });
});

test("a long header of commas takes time in proportion to its length", () => {
  const read = clientReader(["10.0.0.0/8"]);
  expect(read("10.1.1.1", `192.0.2.7${",10.1.1.1".repeat(100_000)}`)).toBe("192.0.2.7");
  expect(read("10.1.1.1", ",".repeat(1_000_000))).toBe("10.1.1.1");
});

test("more addresses than the cache holds are read as well", () => {
  const read = clientReader([]);
  for (let i = 0; i < 2 * MAX_CACHED_ADDRESSES + 1; i++) {
    const address = `10.0.${i >> 8}.${i & 255}`;
    expect(read(address, "")).toBe(address);
  }
  expect(read("10.0.0.0", "")).toBe("10.0.0.0");
});

test("an address range is an address, or a network with a prefix length", () => {
  for (const range of ["10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/128", "::1", "::ffff:10.0.0.0/104"]) {
    expect([range, isAddressRange(range)]).toEqual([range, true]);
    clientReader([range])("192.0.2.1", "");
  }
  const wrong = [
    "",
    "10.0.0",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "10.0.0.0/ 8",
    "/8",
  ];
  for (const range of [...wrong, "proxy", "fe80::1%eth0", "10.0.0.0/8x", "010.0.0.1"]) {
    expect([range, isAddressRange(range)]).toEqual([range, false]);
  }
});
