// The decision picture: a question to each need that the first choice lacks,
// its answer to the right, and at the foot the contender that is left.
import type { Data, Decision } from "./model";
import { hueOf, theme, type Theme } from "./theme";

const ns = "http://www.w3.org/2000/svg";

function shape(tag: string, attributes: Record<string, string | number>, text?: string): SVGElement {
  const element = document.createElementNS(ns, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

export function drawDecision(element: HTMLElement, decision: Decision, data: Data): void {
  const t = theme();
  const width = Math.min(element.clientWidth, 640);
  const [row, box, gap] = [64, 38, Math.max(34, width * 0.1)];
  const left = (width - gap) * 0.56;
  const right = width - gap - left;
  const height = row * (decision.questions.length + 1);
  const svg = shape("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, "font-size": 13, "font-family": getComputedStyle(document.body).fontFamily,
  });
  const write = (x: number, y: number, room: number, text: string, weight = 400) => {
    const most = Math.floor(room / 7.2);
    // At most two lines, as full as words make them.
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines.length - 1;
      if (last === 0 && lines[0] && lines[0].length + 1 + word.length > most) lines.push(word);
      else lines[last] = `${lines[last]} ${word}`.trim();
    }
    lines.forEach((line, i) => {
      const at = y + 4.5 + 15 * (i - (lines.length - 1) / 2);
      svg.append(shape("text", { x, y: at, "text-anchor": "middle", fill: t.ink, "font-weight": weight }, line.length > most ? line.slice(0, most - 1) + "…" : line));
    });
  };
  const answer = (x: number, y: number, room: number, place: number) => {
    svg.append(shape("rect", { x, y: y - box / 2, width: room, height: box, fill: t.paper, stroke: hueOf(t, data, place), "stroke-width": 2.5 }));
    write(x + room / 2, y, room - 8, data.contenders[place], 600);
  };
  decision.questions.forEach((q, i) => {
    const y = row * i + box / 2 + 2;
    svg.append(shape("rect", { x: 1, y: y - box / 2, width: left - 2, height: box, rx: box / 2, fill: t.paper, stroke: t.muted }));
    write(left / 2, y, left - 24, `${q.words}?`);
    arrow(svg, t, left, y, left + gap, y, "yes");
    answer(left + gap, y, right - 2, q.take);
    arrow(svg, t, left / 2, y + box / 2, left / 2, y + row - box / 2, "no");
  });
  answer(left * 0.16, row * decision.questions.length + box / 2 + 2, left * 0.68, decision.else);
  element.replaceChildren(svg);
  element.style.height = `${height}px`;
}

function arrow(svg: SVGElement, t: Theme, x1: number, y1: number, x2: number, y2: number, word: string): void {
  const head = x1 === x2 ? `M${x2 - 4} ${y2 - 6}L${x2} ${y2}L${x2 + 4} ${y2 - 6}` : `M${x2 - 6} ${y2 - 4}L${x2} ${y2}L${x2 - 6} ${y2 + 4}`;
  svg.append(shape("path", { d: `M${x1} ${y1}L${x2} ${y2}${head}`, fill: "none", stroke: t.muted, "stroke-width": 1.3 }));
  const [x, y] = x1 === x2 ? [x1 + 14, (y1 + y2) / 2 + 4] : [(x1 + x2) / 2, y1 - 6];
  svg.append(shape("text", { x, y, "text-anchor": "middle", fill: t.muted, "font-size": 12 }, word));
}
