"use strict";
for (const table of document.querySelectorAll("table[data-sortable]")) {
  for (const button of table.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const heading = button.closest("th");
      const number = heading.classList.contains("number");
      const before = heading.getAttribute("aria-sort");
      const down = before ? before === "ascending" : number;  // of numbers the largest come first
      const key = (row) => row.cells[heading.cellIndex].dataset.value ?? row.cells[heading.cellIndex].textContent.trim();
      const order = (one, other) => {
        const [a, b] = [key(one), key(other)];
        if (a === "" || b === "") return (a === "") - (b === "");  // what has no value comes last, either way
        const compared = number ? a - b : a.localeCompare(b, document.documentElement.lang, { numeric: true });
        return down ? -compared : compared;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(order));
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  }
}
