/** Renders the Markdown subset of the API descriptions: paragraphs, headings, lists, tables, code, bold, links. */
import type { Children } from "../../ui/use-data.ts";

export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocksOf(text).map(showBlock)}</div>;
}

/** Splits text into blocks of lines. */
function blocksOf(text: string): string[][] {
  const blocks: string[][] = [];
  let isCode = false;
  let isNew = true;
  for (const line of text.split("\n")) {
    const isFence = line.startsWith("```");
    if (!isCode && line.trim() === "") {
      isNew = true;
      continue;
    }
    const begins = !isCode && (isNew || isFence || /^(#{1,4} |[-*] )/.test(line));
    const last = blocks.at(-1);
    const isSameList = !isNew && last !== undefined && isItem(line) && isItem(last[0] ?? "");
    if (last === undefined || (begins && !isSameList)) blocks.push([line]);
    else last.push(line);
    if (isFence) isCode = !isCode;
    isNew = isFence && !isCode;
  }
  return blocks;
}

const isItem = (line: string): boolean => /^[-*] /.test(line);

function showBlock(lines: string[], key: number): Children {
  const [first = ""] = lines;
  if (first.startsWith("```")) {
    return (
      <div key={key} class="code">
        <pre>{lines.filter((line) => !line.startsWith("```")).join("\n")}</pre>
      </div>
    );
  }
  const heading = /^(#{1,4}) (.*)$/.exec(first);
  if (heading !== null) return <h3 key={key}>{inline(heading[2] ?? "")}</h3>;
  if (isItem(first)) {
    const items: string[] = [];
    for (const line of lines) {
      if (isItem(line)) items.push(line.slice(2));
      else items.push(`${items.pop()} ${line.trim()}`);
    }
    return (
      <ul key={key}>
        {items.map((item) => (
          <li key={item}>{inline(item)}</li>
        ))}
      </ul>
    );
  }
  if (first.startsWith("|") && lines.length > 1) return <MarkdownTable key={key} lines={lines} />;
  return <p key={key}>{inline(lines.join(" "))}</p>;
}

const cellsOf = (line: string): string[] =>
  line
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim());

function MarkdownTable({ lines }: { lines: string[] }) {
  const [titles = [], , ...rows] = lines.map(cellsOf);
  return (
    <table class="cards">
      <thead>
        <tr>
          {titles.map((title) => (
            <th key={title} scope="col">
              {inline(title)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells) => (
          <tr key={cells.join()}>
            {cells.map((cell, i) => (
              <td key={titles[i]} data-title={titles[i]}>
                <span>{inline(cell)}</span>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

/** Renders code, bold and links; a link with another scheme stays text. */
export function inline(text: string): Children {
  const parts: Children[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, bold, title, address] = match;
    parts.push(text.slice(from, match.index));
    if (code !== undefined) parts.push(<code key={match.index}>{code}</code>);
    else if (bold !== undefined) parts.push(<strong key={match.index}>{bold}</strong>);
    else if (/^(https?:\/\/|\/)/.test(address ?? "")) {
      parts.push(
        <a key={match.index} href={address}>
          {title}
        </a>,
      );
    } else parts.push(title);
    from = match.index + whole.length;
  }
  parts.push(text.slice(from));
  return <>{parts}</>;
}
