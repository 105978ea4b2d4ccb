"use strict";

// A key of the legend hides and shows its group in all charts.
for (const key of document.querySelectorAll("button.key")) {
  key.addEventListener("click", () => {
    const hide = key.getAttribute("aria-pressed") === "true";
    key.setAttribute("aria-pressed", String(!hide));
    for (const drawn of document.querySelectorAll("svg .g" + key.dataset.group)) {
      drawn.classList.toggle("hidden", hide);
    }
  });
}

// A column is one of numbers where every cell is one, with a deviation or not, or nothing.
const number = /^[-+]?[0-9.]+(e[-+]?[0-9]+)?( ± .*)?$/i;
const nothing = (cell) => cell === "" || cell === "-" || cell === "never";

// compare orders two cells; what has no number comes last, whichever way the others go.
function compare(a, b, numeric, down) {
  if (nothing(a) || nothing(b)) {
    return nothing(a) - nothing(b);
  }
  const order = numeric ? parseFloat(a) - parseFloat(b) : a.localeCompare(b, undefined, { numeric: true });
  return down ? -order : order;
}

// The head of a column sorts the rows by it, and turns their order at the next click.
for (const head of document.querySelectorAll("th button")) {
  head.addEventListener("click", () => {
    const column = head.parentElement;
    const body = column.closest("table").tBodies[0];
    const down = column.getAttribute("aria-sort") === "ascending";
    for (const other of column.parentElement.cells) {
      other.removeAttribute("aria-sort");
    }
    column.setAttribute("aria-sort", down ? "descending" : "ascending");
    const text = (row) => row.cells[column.cellIndex].textContent;
    const rows = Array.from(body.rows);
    const numeric = rows.every((row) => nothing(text(row)) || number.test(text(row)));
    rows.sort((a, b) => compare(text(a), text(b), numeric, down));
    body.append(...rows);
  });
}
