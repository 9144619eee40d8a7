// The stress part. Text of the data reaches the page through textContent only, never as markup.
(() => {
  $("stress").addEventListener("click", (event) => {
    const told = event.target.closest("[title]");
    const detail = $("stress-detail");
    if (!detail) return;
    detail.hidden = !told;
    if (told) detail.textContent = told.title;
  });
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  const passage = (heading, parts, tag, className) => {
    const box = el("div", className);
    const text = el("p", "text");
    for (const [changed, part] of parts) text.append(changed ? el(tag, "", part) : part);
    box.append(el("h4", "", heading), text);
    return box;
  };
  const spanning = (text, columns, rows) => {
    const made = el("th", rows > 1 ? "stub" : "", text);
    made.colSpan = columns;
    made.rowSpan = rows;
    return made;
  };
  const SIGNS = { detected: "✓", missed: "✕", missing: "–" };
  const labelCells = (cell) => {
    const sign = el("span", "sign", SIGNS[cell.outcome]);
    sign.setAttribute("aria-label", cell.outcome);
    const altered = el("td", cell.outcome);
    altered.append(sign, cell.altered);
    return [el("td", "", cell.parent), altered];
  };
  const labelTable = (miss) => {
    const [thead, tbody, first, second] = ["thead", "tbody", "tr", "tr"].map((tag) => el(tag));
    first.append(spanning("Judge", 1, 2));
    for (const column of miss.columns) {
      first.append(spanning(column, 2, 1));
      second.append(el("th", "", "Sound parent"), el("th", "", "Altered answer"));
    }
    for (const judge of miss.judges) {
      const row = el("tr");
      row.append(el("th", "stub", judge.name), ...judge.cells.flatMap(labelCells));
      tbody.append(row);
    }
    thead.append(first, second);
    const [wide, table] = [el("div", "wide"), el("table")];
    table.append(thead, tbody);
    wide.append(table);
    return wide;
  };
  const card = (miss) => {
    const box = el("details", "item miss");
    const area = miss.area ? ` (${miss.area})` : "";
    const claim = miss.claim ? `: “${miss.claim}”` : "";
    const header = el("header");
    header.append(el("b", "", miss.id), el("span", "", miss.maker));
    const texts = el("div", "texts");
    if (miss.question) texts.append(passage("Question", [[false, miss.question]], "", "question"));
    texts.append(passage("Sound parent", miss.parent, "del", ""));
    texts.append(passage("Altered answer", miss.altered, "ins", ""));
    const facts = el("dl", "settings");
    for (const [heading, text] of miss.facts) facts.append(el("dt", "", heading), el("dd", "", text));
    box.append(el("summary", "", `Missed by ${miss.missed_by}: ${miss.recipe}${area}${claim}`));
    box.append(header, texts, facts, labelTable(miss));
    return box;
  };

  const rest = JSON.parse($("misses-data").textContent);
  const PAGE = 20;
  let shown = 0;
  const button = $("more-misses");
  if (!button) return;
  button.hidden = !rest.length;
  button.addEventListener("click", () => {
    $("miss-items").append(...rest.slice(shown, shown + PAGE).map(card));
    shown += PAGE;
    button.hidden = shown >= rest.length;
  });
})();
