/** Bounds of deposits and withdrawals. Imports nothing but other limits: the web page reads them too. */

/** One deposit or withdrawal: 100 million USDC. It keeps a typing error from using up MAX_MONEY_MICRO. */
export const MAX_PAYMENT_MICRO = 100_000_000_000_000;
/** Characters of a payment's reference, and of a withdrawal's destination address. */
export const MAX_REFERENCE_LENGTH = 128;
export const MAX_ADDRESS_LENGTH = 128;

/** Withdrawals of one user that wait for an operator. */
export const MAX_PENDING_WITHDRAWALS = 20;
export const MAX_WITHDRAWAL_MAILS_PER_HOUR = 20;
