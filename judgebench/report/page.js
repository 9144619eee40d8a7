// Text of the data reaches the page through textContent and value only, never as markup.
(() => {
  const PAGE = 20;

  // A tap shows what a pointer sees as a tooltip.
  document.querySelector("main").addEventListener("click", (event) => {
    const told = event.target.closest("[title]");
    $("detail").hidden = !told;
    if (told) $("detail").textContent = told.title;
  });
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  // A heading that may break after the signs inside a model's name.
  const named = (text, className) => {
    const made = el("th", className);
    const parts = text.split(/(?<=[/:_.@-])(?=\w)/);
    parts.forEach((part, i) => made.append(...(i ? [el("wbr")] : []), part));
    return made;
  };
  const passage = ([heading, stretches], tag) => {
    const [box, text] = [el(tag === "summary" ? "details" : "div"), el("p", "text")];
    for (const [change, part] of stretches) text.append(change ? el(change, "", part) : part);
    box.append(el(tag, "", heading), text);
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
    top.append(...grid.columns.map((name, i) => named(name, i < grid.stubs ? "stub" : "")));
    for (const cells of grid.rows) {
      const row = el("tr");
      row.append(...cells.map((one, i) => (i < grid.stubs ? named(one[0], "stub") : cell(one))));
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
    return box;
  };

  const browse = (box) => {
    const data = JSON.parse(box.querySelector("script").textContent);
    const [form, list, more] = [".choose", ".cards", ".more"].map((s) => box.querySelector(s));
    const plain = (texts) => texts.map(([, parts]) => parts.map(([, text]) => text).join(""));
    const words = new Map(
      data.cards.map((card) => [
        card,
        [card.title, ...card.about, ...plain(card.texts)].join("\n").toLowerCase(),
      ]),
    );
    const choices = data.facets.map(([name, values]) => {
      const [label, select] = [el("label", "", name), el("select")];
      for (const [value, text] of [["", "any"], ...values.map((one) => [one, one])]) {
        const option = el("option", "", text);
        option.value = value;
        select.append(option);
      }
      label.append(select);
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
