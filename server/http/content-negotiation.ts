/** Which of the possible responses a client prefers. RFC 9110, section 12.5. */

/** True where the Accept header names the media type (in lower case) with at least the weight of JSON. */
export function prefers(accept: string, mediaType: string): boolean {
  if (accept === mediaType) return true;
  const text = accept.toLowerCase();
  if (!text.includes(mediaType)) return false;
  const weights = weightsOf(text);
  const wanted = weights.get(mediaType) ?? 0;
  // The most specific range counts.
  const json = weights.get("application/json") ?? weights.get("application/*") ?? weights.get("*/*") ?? 0;
  return wanted > 0 && wanted >= json;
}

/** True where the Accept-Encoding header allows the content coding (in lower case). */
export function allowsEncoding(acceptEncoding: string, encoding: string): boolean {
  const weights = weightsOf(acceptEncoding.toLowerCase());
  return (weights.get(encoding) ?? weights.get("*") ?? 0) > 0;
}

/** The weight of each entry; 0 where the client rejects it. */
function weightsOf(text: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const entry of text.split(",")) {
    const [name = "", ...params] = entry.split(";").map((part) => part.trim());
    const quality = params.find((param) => param.startsWith("q="));
    weights.set(name, quality === undefined ? 1 : Number(quality.slice(2)) || 0);
  }
  return weights;
}
