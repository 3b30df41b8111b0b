/** Bounds that several rooms share whatever they do. Imports nothing but other limits: the web page reads them too. */

/** Characters of a list that one turn of the gateway's event loop writes: about a millisecond. */
export const MAX_CHARACTERS_PER_TURN = 256 * 1024;
