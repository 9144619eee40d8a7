(() => {
  const RANKS = ["1", "2", "3", "4", "5"];

  // --- ranks and remarks, by the place of item and argument ---
  const [kept, keep] = browserStore(data.store, {});
  const said = (i, j) => kept[`${i} ${j}`] || { rank: "", remark: "" };
  const change = (i, j, parts) => {
    kept[`${i} ${j}`] = { ...said(i, j), ...parts };
    keep();
    tell();
  };
  saveAsTable(() =>
    data.items.flatMap((item, i) =>
      item.arguments.map((argument, j) =>
        data.columns.map((column, at) =>
          column === "rank" || column === "remark" ? safe(said(i, j)[column]) : argument.cells[at],
        ),
      ),
    ),
  );

  // --- one item ---
  const choice = (i, j, rank) => {
    const label = el("label", "rank");
    const radio = el("input");
    radio.type = "radio";
    radio.name = `rank-${i}-${j}`;
    radio.value = rank;
    radio.checked = said(i, j).rank === rank;
    radio.addEventListener("change", () => change(i, j, { rank }));
    label.append(radio, rank);
    return label;
  };
  const argumentCard = (i, argument, j) => {
    const box = el("fieldset", "argument");
    const remark = el("input", "remark");
    remark.placeholder = "Remark";
    remark.setAttribute("aria-label", `Remark on argument ${argument.letter}`);
    remark.value = said(i, j).remark;
    remark.addEventListener("input", () => change(i, j, { remark: remark.value }));
    const row = el("div", "ranks");
    row.append(
      el("span", "end", "best"),
      ...RANKS.map((rank) => choice(i, j, rank)),
      el("span", "end", "clearly wrong"),
      remark,
    );
    box.append(el("legend", "", `Argument ${argument.letter}`), shownText(argument.text), row);
    return box;
  };
  const card = (item, i) => {
    const box = el("article", "card");
    box.id = `item-${i}`;
    const head = el("header");
    head.append(el("b", "", `${i + 1} of ${data.items.length}`), el("span", "", item.task));
    box.append(head, el("h2", "text", item.question));
    if (item.answer) box.append(el("p", "answer", `Right answer: ${item.answer}`));
    if (item.document) {
      const shown = el("details");
      shown.append(el("summary", "", "The document"), el("p", "text", item.document));
      box.append(shown);
    }
    box.append(...item.arguments.map((argument, j) => argumentCard(i, argument, j)));
    return box;
  };
  const tell = () => {
    const whole = data.items.map((item, i) => item.arguments.every((_, j) => said(i, j).rank));
    $("progress").textContent = `${whole.filter(Boolean).length} of ${whole.length} items ranked`;
    whole.forEach((done, i) => $(`item-${i}`).classList.toggle("done", done));
  };

  $("items").append(...data.items.map(card));
  tell();
})();
