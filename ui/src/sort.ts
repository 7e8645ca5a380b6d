// Tables whose cells carry their number in data-v sort by a click on a head, or by Enter.
export function setUpSorting(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>("table:has(td[data-v])")) {
    const heads = [...table.querySelectorAll<HTMLElement>("thead th")];
    heads.forEach((head, column) => {
      if (head.classList.contains("sortable")) return;
      head.classList.add("sortable");
      head.tabIndex = 0;
      const sort = () => {
        const down = head.getAttribute("aria-sort") !== "descending" && column > 0;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const value = (row: HTMLTableRowElement) => row.cells[column].dataset.v ?? "";
        const rows = [...body.rows].sort((a, b) => {
          if (column === 0) return a.cells[0].textContent!.localeCompare(b.cells[0].textContent!);
          const [x, y] = [value(a), value(b)];
          if (x === "" || y === "") return Number(x === "") - Number(y === "");
          return down ? Number(y) - Number(x) : Number(x) - Number(y);
        });
        body.append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (e) => {
        if (e.key === "Enter" || e.key === " ") {
          e.preventDefault();
          sort();
        }
      });
    });
  }
}
