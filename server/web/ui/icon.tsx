/** Line icons of 16 units, drawn in the colour of the text around them. */

const PATHS = {
  search: "M11.500 7a4.500 4.500 0 1 1-9 0a4.500 4.500 0 0 1 9 0M10.500 10.500l3 3",
  alert: "M8 2 1.700 13h12.600zM8 6.500v3M8 11.300v.200",
  info: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M8 7.300V11M8 5v.200",
  check: "m3 8.500 3.200 3.200L13 5",
  close: "m4 4 8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.5 14h3",
  download: "M8 2.500v8M4.800 7.500 8 10.700l3.200-3.200M3 13.500h10",
  edit: "M10.500 3 13 5.500 6 12.500l-3 .500.500-3z",
  chevron: "m4.500 6.500 3.500 3.500 3.500-3.500",
  back: "M10 3.500 5.500 8l4.500 4.500",
  swap: "M3 5.500h9L9.500 3M13 10.500H4L6.500 13",
  list: "M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.200M2.500 8h.200M2.500 12h.200",
  grid: "M2.500 2.500H7V7H2.500zM9 2.500h4.500V7H9zM2.500 9H7v4.500H2.500zM9 9h4.500v4.500H9z",
  pie: "M8 2a6 6 0 1 0 6 6H8zM10.500 2.300a6 6 0 0 1 3.200 3.200h-3.200z",
  user: "M10.700 5.500a2.700 2.700 0 1 1-5.400 0a2.700 2.700 0 0 1 5.400 0M2.800 13.500c.800-2.600 2.800-3.800 5.200-3.800s4.400 1.200 5.200 3.800",
  sun: "M11 8a3 3 0 1 1-6 0a3 3 0 0 1 6 0M8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1.100 1.100M11.500 11.500l1.100 1.100M12.600 3.400l-1.100 1.100M4.500 11.500l-1.100 1.100",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500z",
  off: "M2 2l12 12M4 6.500A6 6 0 0 1 6 5.500M8 5c2 0 3.600.7 5 2M6 9.300a3.500 3.500 0 0 1 3-.6M8 12.300v.2",
  star: "m8 2 1.800 3.800 4.200.500-3.100 2.900.800 4.100L8 11.300l-3.700 2 .800-4.100L2 6.300l4.200-.500z",
  filter: "M2 4h12M4.500 8h7M6.500 12h3",
  politics: "M2 13.500h12M3 6.500h10L8 2.500zM4 6.500v5M8 6.500v5M12 6.500v5",
  economics:
    "m4 12 8-8M6.600 4.800a1.800 1.800 0 1 1-3.600 0a1.800 1.800 0 0 1 3.600 0M13 11.200a1.800 1.800 0 1 1-3.600 0a1.800 1.800 0 0 1 3.600 0",
  sports:
    "M5 2.500h6v4a3 3 0 0 1-6 0zM5 3.500H2.800c0 2.200.800 3.300 2.300 3.500M11 3.500h2.200c0 2.200-.800 3.300-2.300 3.500M8 9.500v2.500M5.500 13.500h5",
  crypto:
    "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M6.500 5v6M6.500 5h2.200a1.500 1.500 0 0 1 0 3H6.500h2.600a1.500 1.500 0 0 1 0 3H6.500",
  science: "M14 8A6 2.600 0 1 1 2 8a6 2.600 0 0 1 12 0M10.600 8a2.600 6 0 1 1-5.200 0a2.600 6 0 0 1 5.200 0M8 8v.200",
  climate: "M6.500 9.300V3.500a1.500 1.500 0 0 1 3 0v5.800a3 3 0 1 1-3 0z",
  technology: "M4 4h8v8H4zM6.500 2v2M9.500 2v2M6.500 12v2M9.500 12v2M2 6.500h2M2 9.500h2M12 6.500h2M12 9.500h2",
  culture: "M2 3.500h12v9H2zM5 3.500v9M11 3.500v9M2 8h12",
  up: "M8 3.500 13.500 12h-11z",
  down: "M8 12 2.500 3.500h11z",
} as const;

export type IconName = keyof typeof PATHS;

/** @param size pixels */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return <PathIcon path={PATHS[name]} size={size} />;
}

/** An icon that one part of the page alone has. @param path of the lines @param size pixels */
export function PathIcon({ path, size = 16 }: { path: string; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={path} />
    </svg>
  );
}
