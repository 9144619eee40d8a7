// Text of the data reaches the page through textContent and value only, never as markup.
(() => {
  const PAGE = 20;
  const LAST_TURNS = 4; // of a longer conversation are open

  // A tap shows what a pointer sees as a tooltip.
  document.body.addEventListener("click", (event) => {
    const told = event.target.closest("[title]");
    $("detail").hidden = !told;
    if (told) $("detail").textContent = told.title;
  });
  // A box that is wider than the screen shows on which side there is more of it.
  const mark = (box) => {
    const left = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("goes-on", left > 2);
    box.classList.toggle("goes-back", box.scrollLeft > 2);
  };
  const edges = new ResizeObserver((seen) => seen.forEach(({ target }) => mark(target)));
  for (const box of document.querySelectorAll(".wide")) edges.observe(box);
  document.addEventListener("scroll", (event) => event.target.matches?.(".wide") && mark(event.target), true);

  // The heading of a column orders the rows: up, down, and as they were.
  const number = (text) => parseFloat(text.replaceAll(",", "").replace("−", "-"));
  const before = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b);
    return x - y;
  };
  const orderable = (table) => {
    const body = table.tBodies[0];
    const given = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, i) => {
      const button = el("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const next = { null: "ascending", ascending: "descending" }[heading.getAttribute("aria-sort")];
        for (const other of headings) other.removeAttribute("aria-sort");
        const rows = [...given];
        const shown = (row) => row.cells[i].querySelector(".value").textContent;
        if (next) {
          heading.setAttribute("aria-sort", next);
          rows.sort((a, b) => (next === "ascending" ? 1 : -1) * before(shown(a), shown(b)));
        }
        body.append(...rows);
      });
    });
  };

  // One metric at a time: rows, tables and sentences about others are hidden.
  const tables = [...document.querySelectorAll(".table table")];
  const metricRows = tables.flatMap((table) => {
    const place = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "Metric");
    const rows = place < 0 ? [] : [...table.tBodies[0].rows];
    return rows.map((row) => [row, row.cells[place].querySelector(".value").textContent]);
  });
  tables.filter((table) => table.tBodies[0].rows.length > 1).forEach(orderable);
  const metrics = [...new Set(metricRows.map(([, metric]) => metric))];
  const longest = [...metrics].sort((a, b) => b.length - a.length);
  const named = (text) =>
    longest.filter((metric) => {
      const there = text.includes(metric);
      if (there) text = text.replaceAll(metric, " ");
      return there;
    });
  const sentences = [...document.querySelectorAll(".said")]
    .map((list) => [...list.children].map((one) => [one, named(one.textContent)]))
    .filter((list) => list.every(([, found]) => found.length))
    .flat();
  const whole = [...document.querySelectorAll(".table")]
    .map((table) => [table, named(table.dataset.title)])
    .filter(([, found]) => found.length);
  const choose = (name, values, any) => {
    const [label, select] = [el("label", "", name), el("select")];
    for (const [value, text] of [["", any], ...values.map((one) => [one, one])]) {
      const option = el("option", "", text);
      option.value = value;
      select.append(option);
    }
    label.append(select);
    return [label, select];
  };
  if (metrics.length > 1) {
    const [label, select] = choose("Metric", metrics, "all metrics");
    select.addEventListener("input", () => {
      const wanted = select.value;
      for (const [row, metric] of metricRows) row.hidden = Boolean(wanted) && metric !== wanted;
      for (const [one, found] of [...sentences, ...whole]) one.hidden = Boolean(wanted) && !found.includes(wanted);
      for (const other of document.querySelectorAll(".browse select[name=Metric]")) {
        other.value = wanted;
        other.dispatchEvent(new Event("input", { bubbles: true }));
      }
    });
    $("metrics").append(label);
    $("metrics").hidden = false;
    $("metrics").addEventListener("submit", (event) => event.preventDefault());
  }

  // A heading that may break after the signs inside a model's name.
  const heading = (text, className) => {
    const made = el("th", className);
    const parts = text.split(/(?<=[/:_.@-])(?=\w)/);
    parts.forEach((part, i) => made.append(...(i ? [el("wbr")] : []), part));
    return made;
  };
  const folded = (heading, ...inside) => {
    const box = el("details");
    box.append(el("summary", "", heading), ...inside);
    return box;
  };
  // A text, or pieces with headings of their own: turns of a conversation, or columns.
  const passage = ([heading, stretches], tag) => {
    const box = el(tag === "summary" ? "details" : "div");
    const [pieces, inside] = [[], el("div")];
    let text = el("p", "text");
    for (const [mark, part] of stretches) {
      if (mark === "turn" || mark === "column") {
        const piece = el("div", "piece");
        text = el("p", "text");
        piece.append(el("h5", "", part), text);
        piece.dataset.by = part;
        pieces.push(piece);
        inside.className = mark;
      } else text.append(mark ? el(mark, "", part) : part);
    }
    const before = inside.className === "turn" ? pieces.length - LAST_TURNS : 0;
    if (before > 1) inside.append(folded(`${before} turns before`, ...pieces.splice(0, before)));
    inside.append(...pieces);
    box.append(el(tag, "", heading), pieces.length ? inside : text);
    return box;
  };
  const cell = ([text, look, remark, best]) => {
    const made = el("td", [look && `look-${look}`, best && "best"].filter(Boolean).join(" "), text);
    if (remark) made.title = remark;
    return made;
  };
  const gridTable = (grid) => {
    const [wide, table, head, body, top] = ["div", "table", "thead", "tbody", "tr"].map((t) => el(t));
    wide.className = "wide";
    top.append(...grid.columns.map((name, i) => heading(name, i < grid.stubs ? "stub" : "")));
    for (const cells of grid.rows) {
      const row = el("tr");
      row.append(...cells.map((one, i) => (i < grid.stubs ? heading(one[0], "stub") : cell(one))));
      body.append(row);
    }
    head.append(top);
    table.append(head, body);
    wide.append(table);
    return wide;
  };
  const article = (card) => {
    const [box, header, texts] = [el("article", "item"), el("header"), el("div", "texts")];
    header.append(el("b", "", card.title), ...card.about.map((text) => el("span", "", text)));
    texts.append(...card.texts.map((one) => passage(one, "h4")));
    box.append(header, texts);
    if (card.grid) box.append(gridTable(card.grid));
    box.append(...card.folded.map((one) => passage(one, "summary")));
    if (card.grid) edges.observe(box.querySelector(".wide"));
    return box;
  };

  const browse = (box) => {
    const data = JSON.parse(box.querySelector("script").textContent);
    const [form, list, more] = [".choose", ".cards", ".more"].map((s) => box.querySelector(s));
    const plain = (texts) => texts.map(([, parts]) => parts.map(([, text]) => text).join(""));
    const words = new Map(
      data.cards.map((card) => [
        card,
        [card.title, ...card.about, ...plain(card.texts), ...plain(card.folded)].join("\n").toLowerCase(),
      ]),
    );
    const choices = data.facets.map(([name, values]) => {
      const [label, select] = choose(name, values, "any");
      select.name = name;
      form.append(label);
      return [name, select];
    });
    const [label, input, count] = [el("label", "", "Text"), el("input"), el("output")];
    input.type = "search";
    label.append(input);
    form.append(label, count);
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());

    let found = [];
    let shown = 0;
    const showMore = () => {
      const next = found.slice(shown, shown + PAGE);
      list.append(...next.map(article));
      shown += next.length;
      more.hidden = shown >= found.length;
      count.textContent = `${shown} of ${found.length} shown`;
    };
    const filter = () => {
      const wanted = choices.filter(([, select]) => select.value);
      const fits = (facet) => wanted.every(([name, select]) => facet[name] === select.value);
      const text = input.value.trim().toLowerCase();
      found = data.cards.filter(
        (card) => words.get(card).includes(text) && (!wanted.length || card.facets.some(fits)),
      );
      shown = 0;
      list.replaceChildren();
      showMore();
    };
    form.addEventListener("input", filter);
    more.addEventListener("click", showMore);
    filter();
  };
  for (const box of document.querySelectorAll(".browse")) browse(box);
})();
