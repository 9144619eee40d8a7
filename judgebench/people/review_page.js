(() => {
  const { items, questions } = data;
  // An answer belongs to the texts, so it outlives a page made anew of the same items.
  const [kept, keep] = browserStore(`judgebench tune review of ${data.name}`, {
    reviewer: "", answers: {},
  });
  const keyOf = (item) => `${item.id}\n${item.hash}`;
  const said = (item) => kept.answers[keyOf(item)] || {};
  const change = (item, parts) => {
    kept.answers[keyOf(item)] = { ...said(item), reviewer: kept.reviewer, ...parts };
    keep();
    tell();
  };
  const done = (item) => questions.every(({ key }) => said(item)[key]);
  saveAsTable(() =>
    items.map((item) => {
      const cells = { ...said(item), item_id: null, content_hash: item.hash };
      return data.columns.map((column) =>
        column === "item_id" ? item.cell : safe(cells[column] || ""),
      );
    }),
  );

  let at = Math.max(0, items.findIndex((item) => !done(item)));
  let asked = 0; // the question that a letter answers

  const answer = (place, word) => {
    const { key } = questions[place];
    const again = said(items[at])[key] === word;
    asked = again ? place : Math.min(place + 1, questions.length - 1);
    change(items[at], { [key]: again ? "" : word });
  };
  const questionBox = (question, place) => {
    const box = el("div", "question");
    box.id = `question-${place}`;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", question.text);
    const choices = question.answers.map((word) => {
      const made = keyButton("", word, word[0], () => answer(place, word));
      made.dataset.word = word;
      return made;
    });
    box.append(el("span", "", question.text), ...choices);
    return box;
  };
  const field = (item, key, title, rows, start) => {
    const box = el("label", "field", title);
    const text = el("textarea");
    text.id = key;
    text.rows = rows;
    text.value = said(item)[key] ?? start;
    text.addEventListener("input", () => change(item, { [key]: text.value }));
    box.append(text);
    return box;
  };
  const section = ([heading, text, folded]) => {
    if (!folded) return [el("h2", "", heading), shownText(text)];
    const box = el("details");
    box.append(el("summary", "", heading), shownText(text));
    return [box];
  };
  const show = (place) => {
    at = place;
    asked = 0;
    const item = items[at];
    if (!item) return;
    const box = el("article", "card");
    box.id = "card";
    const head = el("header");
    head.append(el("b", "", `${at + 1} of ${items.length}`), el("b", "", item.id));
    head.append(el("span", "", item.title));
    const steps = el("div", "steps");
    steps.append(
      keyButton("", "Previous", "←", () => step(-1)),
      keyButton("", "Next", "→", () => step(1)),
      keyButton("", "Next to answer", "n", toAnswer),
    );
    box.append(head, ...item.sections.flatMap(section), ...questions.map(questionBox));
    if (typeof item.edit === "string") box.append(field(item, "edit", "Your text", 6, item.edit));
    box.append(field(item, "remark", "Remark", 2, ""), steps);
    $("item").replaceChildren(box);
    scrollTo(0, 0);
    tell();
  };
  const step = (by) => items[at + by] && show(at + by);
  const toAnswer = () => {
    const order = [...items.keys()].map((i) => (at + 1 + i) % items.length);
    const found = order.find((i) => !done(items[i]));
    if (found !== undefined) show(found);
  };
  const tell = () => {
    const n = items.filter(done).length;
    $("progress").textContent = `${n} of ${items.length} items answered`;
    const item = items[at];
    if (!item) return;
    $("card").classList.toggle("done", done(item));
    questions.forEach(({ key }, place) => {
      const box = $(`question-${place}`);
      box.classList.toggle("at", place === asked);
      for (const made of box.querySelectorAll("button"))
        made.setAttribute("aria-pressed", said(item)[key] === made.dataset.word);
    });
  };

  $("reviewer").value = kept.reviewer;
  $("reviewer").addEventListener("input", () => {
    kept.reviewer = $("reviewer").value.trim();
    for (const key of Object.keys(kept.answers)) kept.answers[key].reviewer = kept.reviewer;
    keep();
  });
  onKeys((key) => {
    const word = items.length && questions[asked].answers.find((one) => one[0] === key);
    if (word) return () => answer(asked, word);
    return items.length && {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      ArrowUp: () => ((asked = Math.max(0, asked - 1)), tell()),
      ArrowDown: () => ((asked = Math.min(questions.length - 1, asked + 1)), tell()),
      n: toAnswer,
    }[key];
  });
  show(at);
})();
