/** The errors of order entry, in the words that clients read. */
import { Reason } from "../../engine/constants.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";

/** A cancel or an amend comes too late. */
export function orderFinished(): ApiError {
  return new ApiError(ErrorKind.conflict, "the order is finished");
}

/** Why the book left an order as it was. @param reason a code of `Reason` */
export function amendRejection(reason: number): ApiError {
  switch (reason) {
    case Reason.none:
      return orderFinished();
    case Reason.tooLate:
      return new ApiError(ErrorKind.conflict, "too_late: valid_until has passed, the order is unchanged");
    case Reason.postOnlyWouldCross:
      return new ApiError(ErrorKind.conflict, "post_only_would_cross: the post-only order is unchanged");
    default:
      return new ApiError(
        ErrorKind.marketNotOpen,
        `the market is ${reason === Reason.marketHalted ? "halted" : "closed"}`,
      );
  }
}

export function quotesTooLate(): ApiError {
  return new ApiError(ErrorKind.conflict, "too_late: valid_until has passed, the quotes are unchanged");
}

export function tooManyInFlight(): ApiError {
  return overloaded("too many orders in flight: try again");
}

export function exchangeIsFull(): ApiError {
  return overloaded(
    "the exchange is near its capacity of live orders: the rest is reserved for accounts with few orders",
  );
}

export function clientOrderIdInUse(): ApiError {
  return new ApiError(ErrorKind.conflict, "client_order_id: in use by another order");
}
