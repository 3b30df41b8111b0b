/** Draws a text as a QR code in the browser: no server sees the text. */
import { encode } from "uqr";

/** @param label for screen readers */
export default function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: 2 });
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : []))).join("");
  return (
    <svg class="qr-code" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <rect width={size} height={size} class="light" />
      <path d={path} class="dark" />
    </svg>
  );
}
