// make is an element with text; text is never read as markup.
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// table is a scrollable one; its first column names the rows.
export function table(label: string, head: string[], rows: string[][]): HTMLElement {
  const cells = (row: string[], tag: "th" | "td") =>
    row.map((cell, i) => make(i === 0 ? "th" : tag, i === 0 ? { scope: tag === "th" ? "col" : "row" } : { class: "num" }, cell));
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row, "td"))));
  const element = make("table", {}, make("thead", {}, make("tr", {}, ...cells(head, "th"))), body);
  return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, element);
}
