/** What a client wants an answer to be, where there is a choice. RFC 9110, section 12.5.1. */

/** True where the Accept header names the media type (in lower case) and wants no JSON more. */
export function prefers(accept: string, mediaType: string): boolean {
  const text = accept.toLowerCase();
  if (!text.includes(mediaType)) return false;
  const weights = new Map<string, number>();
  for (const entry of text.split(",")) {
    const [type, ...params] = entry.split(";").map((part) => part.trim());
    const quality = params.find((param) => param.startsWith("q="));
    weights.set(type!, quality === undefined ? 1 : Number(quality.slice(2)) || 0);
  }
  const wanted = weights.get(mediaType) ?? 0;
  // The most specific range counts.
  const json = weights.get("application/json") ?? weights.get("application/*") ?? weights.get("*/*") ?? 0;
  return wanted > 0 && wanted >= json;
}
