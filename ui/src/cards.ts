// On a phone a table that is wider than the screen becomes cards, one to a row: every cell
// says the head of its column. The roles keep it a table for a screen reader.
import { make } from "./dom";

const narrow = matchMedia("(max-width: 30rem)");

export function setUpCards(): void {
  if (!narrow.matches) {
    narrow.addEventListener("change", setUpCards, { once: true });
    return;
  }
  for (const table of document.querySelectorAll<HTMLTableElement>("main .scroll > table:not(.cards)")) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    if (heads.length < (table.classList.contains("texts") ? 3 : 4)) continue; // as wide as a phone
    table.classList.add("cards");
    table.setAttribute("role", "table");
    for (const row of table.rows) row.setAttribute("role", "row");
    for (const head of heads) head.setAttribute("role", "columnheader");
    const short = heads.map((head) => head.firstChild?.textContent ?? "");
    const words = new Set(short).size === short.length ? short : heads.map((head) => [...head.childNodes].map((n) => n.textContent).join(", "));
    for (const body of table.tBodies) {
      body.setAttribute("role", "rowgroup");
      for (const row of body.rows) {
        [...row.cells].forEach((cell, i) => {
          cell.setAttribute("role", i === 0 ? "rowheader" : "cell");
          if (i === 0) return;
          cell.dataset.head = words[i];
          cell.replaceChildren(make("div", {}, ...cell.childNodes)); // beside the head
        });
      }
    }
  }
}
