/* A market maker in C, with the generated header and nothing else of the exchange: places and cancels orders in batches,
   follows its orders, money and positions through disconnects, and keeps the market's books. At the end it prints what it
   knows. Arguments: host, port, token, market, its two outcomes, seconds, orders a second, and a seed. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "exchange_sbe.h"

enum { OPERATIONS = 50, WINDOW = 32, RESTING = 2000, PRICES = 10000, MOST_ORDERS = 100000000, ROOM = 1 << 22, HEAD = 14 };
static uint8_t in[ROOM], out[HEAD + 65536];
static size_t filled;
static int fd = -1, outstanding, has_ponged, is_resumed;
static uint32_t market, outcomes[2];
static uint64_t last_update, next_id = 1, accepted, rejected, fills, resumed, last_order;
static uint32_t *remaining; /* By order; 0: not live. */
static uint64_t resting[1 << 16]; /* Orders in the order in which they came to rest: a ring. */
static unsigned first_resting, next_resting;
static int64_t money[3];
static int64_t cost[2];
static uint64_t shares[2], book[2][2][PRICES], book_sequence[2];

static void stop(const char *why, uint64_t number) {
  fprintf(stderr, "%s: %" PRIu64 "\n", why, number);
  exit(2);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int index_of(uint32_t outcome) {
  if (outcome != outcomes[0] && outcome != outcomes[1]) stop("another outcome", outcome);
  return outcome == outcomes[1];
}

static void lost(void) {
  if (fd >= 0) close(fd);
  fd = -1;
  filled = 0;
  is_resumed = 0;
  outstanding = 0; /* What became of the batches shows in the updates. */
}

/* Sends a frame of messages that were written at out + HEAD. A mask of 0 leaves the bytes as they are. */
static void send_frame(uint8_t opcode, size_t length) {
  uint8_t *start = out + HEAD - (length < 126 ? 6 : 8);
  size_t left = (size_t)(out + HEAD - start) + length;
  start[0] = (uint8_t)(0x80 | opcode);
  start[1] = (uint8_t)(0x80 | (length < 126 ? length : 126));
  if (length >= 126) {
    start[2] = (uint8_t)(length >> 8);
    start[3] = (uint8_t)length;
  }
  memset(out + HEAD - 4, 0, 4);
  while (left > 0 && fd >= 0) {
    ssize_t sent = send(fd, start, left, MSG_NOSIGNAL);
    if (sent <= 0) {
      lost();
      return;
    }
    start += sent;
    left -= (size_t)sent;
  }
}

static void send_batch(void) {
  struct exchange_frame frame = exchange_frame_in(out + HEAD, 65536);
  struct exchange_batch batch = EXCHANGE_BATCH_INIT;
  int i;
  batch.count = OPERATIONS;
  exchange_begin_batch(&frame, next_id++, &batch);
  exchange_end(&frame);
  for (i = 0; i < OPERATIONS; i++) {
    if (i % 2 == 0 && next_resting - first_resting > RESTING) {
      struct exchange_cancel_order cancel = EXCHANGE_CANCEL_ORDER_INIT;
      cancel.order_id = resting[first_resting++ & 0xffff];
      exchange_begin_cancel_order(&frame, 0, &cancel);
    } else {
      struct exchange_place_order order = EXCHANGE_PLACE_ORDER_INIT;
      order.market_id = market;
      order.outcome_id = outcomes[rand() % 2];
      order.side = (uint8_t)(1 + rand() % 2);
      order.price = (uint32_t)(4800 + rand() % 400);
      order.quantity = (uint32_t)(1 + rand() % 3);
      exchange_begin_place_order(&frame, 0, &order);
      exchange_add_text8(&frame, NULL, 0);
    }
    exchange_add_text8(&frame, NULL, 0);
    if (exchange_end(&frame) < 0) stop("the frame is full", frame.length);
  }
  outstanding++;
  send_frame(2, frame.length);
}

static void set_levels(struct exchange_body *body, int outcome, int side) {
  struct exchange_group group;
  struct exchange_level level;
  if (exchange_next_group(body, &group) < 0) stop("no levels", 0);
  while (exchange_next_level(&group, &level)) book[outcome][side][level.price] = level.quantity;
}

static void order_updated(const struct exchange_message *message) {
  struct exchange_order order = exchange_read_order(message);
  struct exchange_body body = exchange_body_of(message);
  struct exchange_group group;
  if (!is_resumed) return; /* Live already: Resume sends it again, in its turn. */
  if (message->header.id != last_update + 1) stop("a gap before update", message->header.id);
  last_update = message->header.id;
  if (exchange_next_group(&body, &group) < 0) stop("no fills", last_update);
  fills += group.count;
  if (order.order_id >= MOST_ORDERS) stop("too many orders", order.order_id);
  if (order.order_id > last_order) last_order = order.order_id;
  if (order.status < EXCHANGE_ORDER_STATUS_FILLED && remaining[order.order_id] == 0) {
    resting[next_resting++ & 0xffff] = order.order_id;
  }
  remaining[order.order_id] = order.status >= EXCHANGE_ORDER_STATUS_FILLED ? 0 : order.remaining;
}

static void receive(const struct exchange_message *message) {
  struct exchange_body body = exchange_body_of(message);
  switch (message->header.template_id) {
    case EXCHANGE_TEMPLATE_ORDER_ACCEPTED: accepted++; break;
    case EXCHANGE_TEMPLATE_REJECTED: {
      struct exchange_rejected error = exchange_read_rejected(message);
      struct exchange_text text;
      rejected++;
      if (exchange_next_text16(&body, &text) < 0) stop("no text", error.code);
      /* Orders that filled before their cancel, and sells beyond the shares. */
      if (error.code == 40900 || error.code == 4040 || error.code == 42202 || error.code == 42201) break;
      fprintf(stderr, "%u %.*s\n", error.code, (int)text.length, text.bytes);
      exit(2);
    }
    case EXCHANGE_TEMPLATE_DONE: outstanding--; break;
    case EXCHANGE_TEMPLATE_PONG: has_ponged = 1; break;
    case EXCHANGE_TEMPLATE_RESUMED: resumed++; is_resumed = 1; break;
    case EXCHANGE_TEMPLATE_ORDER_UPDATED: order_updated(message); break;
    case EXCHANGE_TEMPLATE_BALANCE_UPDATED: {
      struct exchange_balance_updated balance = exchange_read_balance_updated(message);
      money[0] = balance.available;
      money[1] = balance.held;
      money[2] = balance.total;
      break;
    }
    case EXCHANGE_TEMPLATE_POSITION_UPDATED: {
      struct exchange_position_updated position = exchange_read_position_updated(message);
      shares[index_of(position.outcome_id)] = position.quantity;
      cost[index_of(position.outcome_id)] = position.cost;
      break;
    }
    case EXCHANGE_TEMPLATE_BOOK_SNAPSHOT: {
      struct exchange_book_snapshot snapshot = exchange_read_book_snapshot(message);
      int outcome = index_of(snapshot.outcome_id);
      memset(book[outcome], 0, sizeof book[outcome]);
      set_levels(&body, outcome, 0);
      set_levels(&body, outcome, 1);
      book_sequence[outcome] = message->header.id;
      break;
    }
    case EXCHANGE_TEMPLATE_BOOK_UPDATED: {
      struct exchange_book_updated update = exchange_read_book_updated(message);
      int outcome = index_of(update.outcome_id);
      if (message->header.id != ++book_sequence[outcome]) stop("a gap before book update", message->header.id);
      set_levels(&body, outcome, 0);
      set_levels(&body, outcome, 1);
      break;
    }
    case EXCHANGE_TEMPLATE_HEARTBEAT: {
      struct exchange_heartbeat beat = exchange_read_heartbeat(message);
      if (is_resumed && beat.orders != last_update) stop("the heartbeat names update", beat.orders);
      break;
    }
    default: break;
  }
}

/* Reads what the server sent, for at most `ms`. */
static void read_frames(int ms) {
  struct pollfd waited;
  size_t at = 0;
  ssize_t bytes;
  waited.fd = fd;
  waited.events = POLLIN;
  if (fd < 0 || poll(&waited, 1, ms) <= 0) return;
  bytes = recv(fd, in + filled, ROOM - filled, 0);
  if (bytes <= 0) {
      lost();
      return;
    }
  filled += (size_t)bytes;
  while (filled - at >= 2) {
    size_t length = in[at + 1] & 127, head = length < 126 ? 2 : length == 126 ? 4 : 10, i, offset = 0;
    struct exchange_message message;
    if (filled - at < head) break;
    if (head > 2) for (length = 0, i = 2; i < head; i++) length = length << 8 | in[at + i];
    if (head + length > ROOM) stop("a frame of bytes", length);
    if (filled - at < head + length) break;
    if ((in[at] & 15) == 8) {
      lost();
      return;
    }
    if ((in[at] & 15) == 9) {
      memcpy(out + HEAD, in + at + head, length);
      send_frame(10, length);
    } else {
      while (exchange_next(in + at + head, length, &offset, &message) == 1) receive(&message);
      if (offset != length) stop("a broken frame of bytes", length);
    }
    at += head + length;
  }
  if (fd < 0) return;
  memmove(in, in + at, filled - at);
  filled -= at;
}

static void open_socket(const char *host, const char *port, const char *token) {
  struct exchange_frame frame = exchange_frame_in(out + HEAD, 65536);
  struct exchange_resume resume = EXCHANGE_RESUME_INIT;
  struct exchange_subscription subscription = EXCHANGE_SUBSCRIPTION_INIT;
  struct sockaddr_in address;
  char request[1024];
  int one = 1;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)atoi(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
      lost();
      return;
    }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  snprintf(request, sizeof request, "GET /api/v1/ws HTTP/1.1\r\nHost: %s:%s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\n"
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
      "Sec-WebSocket-Protocol: sbe\r\n\r\n", host, port, token);
  if (send(fd, request, strlen(request), MSG_NOSIGNAL) <= 0) {
      lost();
      return;
    }
  /* The response ends with an empty line; frames may follow at once. */
  for (filled = 0; filled < 4096; filled++) {
    if (recv(fd, in + filled, 1, 0) <= 0) {
      lost();
      return;
    }
    if (filled >= 3 && memcmp(in + filled - 3, "\r\n\r\n", 4) == 0) break;
  }
  if (memcmp(in, "HTTP/1.1 101", 12) != 0) {
      lost();
      return;
    } /* Not ready yet. */
  filled = 0;
  resume.sequence = last_update;
  exchange_begin_resume(&frame, next_id++, &resume);
  exchange_end(&frame);
  subscription.channel = EXCHANGE_CHANNEL_BOOK;
  exchange_begin_subscribe(&frame, next_id++, &subscription);
  exchange_add_group(&frame, &market, sizeof market, 1);
  exchange_end(&frame);
  send_frame(2, frame.length);
}

static void print_state(void) {
  uint64_t id;
  int outcome, side, price, comma = 0;
  printf("{\"accepted\":%" PRIu64 ",\"rejected\":%" PRIu64 ",\"fills\":%" PRIu64 ",\"connections\":%" PRIu64, accepted, rejected, fills, resumed);
  printf(",\"available\":%" PRId64 ",\"held\":%" PRId64 ",\"total\":%" PRId64, money[0], money[1], money[2]);
  printf(",\"positions\":[[%" PRIu64 ",%" PRId64 "],[%" PRIu64 ",%" PRId64 "]],\"orders\":[", shares[0], cost[0], shares[1], cost[1]);
  for (id = 1; id <= last_order; id++) {
    if (remaining[id] > 0) printf("%s[%" PRIu64 ",%u]", comma++ ? "," : "", id, remaining[id]);
  }
  printf("],\"books\":[");
  for (outcome = 0; outcome < 2; outcome++) {
    printf("%s{\"sequence\":%" PRIu64 ",\"levels\":[", outcome ? "," : "", book_sequence[outcome]);
    for (side = 0, comma = 0; side < 2; side++) for (price = 1; price < PRICES; price++) {
      if (book[outcome][side][price] > 0) printf("%s[%d,%d,%" PRIu64 "]", comma++ ? "," : "", side, price, book[outcome][side][price]);
    }
    printf("]}");
  }
  printf("]}\n");
}

int main(int count, char **arguments) {
  double start = now(), end, rate;
  uint64_t sent = 0;
  if (count != 10) return 1;
  market = (uint32_t)atoi(arguments[4]);
  outcomes[0] = (uint32_t)atoi(arguments[5]);
  outcomes[1] = (uint32_t)atoi(arguments[6]);
  end = start + atof(arguments[7]);
  rate = atof(arguments[8]);
  srand((unsigned)atoi(arguments[9]));
  remaining = (uint32_t *)calloc(MOST_ORDERS, sizeof *remaining);
  if (remaining == NULL) return 1;
  /* A restart may take longer than the seconds: nothing is known for certain before it has resumed. */
  while (now() < end || fd < 0 || outstanding > 0 || !is_resumed) {
    if (fd < 0) open_socket(arguments[1], arguments[2], arguments[3]);
    if (fd < 0) {
      struct timespec pause = { 0, 50000000 };
      nanosleep(&pause, NULL);
      continue;
    }
    while (fd >= 0 && now() < end && outstanding < WINDOW && (double)sent < (now() - start) * rate) {
      send_batch();
      sent += OPERATIONS;
    }
    read_frames(1);
  }
  /* Others trade on: a line on the input says that all have ended. */
  fprintf(stderr, "done\n");
  while (fd >= 0) {
    struct pollfd input = { 0, POLLIN, 0 };
    if (poll(&input, 1, 0) > 0) break;
    read_frames(20);
  }
  if (fd >= 0) {
    struct exchange_frame frame = exchange_frame_in(out + HEAD, 65536);
    exchange_begin_ping(&frame, next_id++);
    exchange_end(&frame);
    send_frame(2, frame.length);
  }
  while (fd >= 0 && !has_ponged) read_frames(100);
  if (fd < 0) stop("the connection is lost", next_id);
  print_state();
  return 0;
}
