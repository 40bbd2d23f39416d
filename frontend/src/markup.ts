/**
 * The manual's plain text as blocks: paragraphs, lists, code, and code inside a line. Only what
 * the docstrings of detectors use. Pure: it gives data, never markup.
 */

export type Block =
  | { kind: "paragraph"; pieces: Piece[] }
  | { kind: "list"; items: Piece[][] }
  | { kind: "code"; text: string };

export interface Piece {
  text: string;
  isCode: boolean;
}

const BULLET = /^\s*[-*] /;
const INDENTED = /^ {4}/;

export function blocksOf(text: string): Block[] {
  return text
    .replace(/\n{3,}/g, "\n\n")
    .split(/\n\s*\n/)
    .filter((part) => part.trim())
    .flatMap(blocksOfPart);
}

/** A paragraph may run into a list or into code without an empty line between them. */
function blocksOfPart(part: string): Block[] {
  const blocks: Block[] = [];
  let lines: string[] = [];
  let kind: Block["kind"] = "paragraph";
  const close = () => {
    if (lines.length > 0) blocks.push(blockOf(kind, lines));
    lines = [];
  };
  for (const line of part.split("\n")) {
    const next = kindOf(line, kind);
    if (next !== kind) close();
    kind = next;
    lines.push(line);
  }
  close();
  return blocks;
}

function kindOf(line: string, before: Block["kind"]): Block["kind"] {
  if (BULLET.test(line)) return "list";
  if (before === "list" && /^\s/.test(line)) return "list"; // goes on below its bullet
  return INDENTED.test(line) ? "code" : "paragraph";
}

function blockOf(kind: Block["kind"], lines: string[]): Block {
  if (kind === "code") return { kind, text: lines.map((line) => line.slice(4)).join("\n") };
  if (kind === "paragraph") return { kind, pieces: piecesOf(lines.join(" ")) };
  const items: string[] = [];
  for (const line of lines) {
    if (BULLET.test(line)) items.push(line.replace(BULLET, ""));
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  return { kind, items: items.map(piecesOf) };
}

/** `code` between backquotes; a single one is only a character. */
export function piecesOf(text: string): Piece[] {
  const parts = text.split("`");
  const isOdd = parts.length % 2 === 0; // one backquote has no partner
  const whole = isOdd ? [...parts.slice(0, -2), parts.slice(-2).join("`")] : parts;
  return whole
    .map((part, index) => ({ text: part, isCode: index % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
