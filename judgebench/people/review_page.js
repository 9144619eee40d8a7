// A page on which people answer questions about items: what they answer is kept in this browser at
// once, and saved as a table. Text of the data reaches the page through textContent and value only.
const { table, items, questions } = JSON.parse($("data").textContent);

// A paragraph of text, or a word in its place.
const shownText = (text) => (text.trim() ? el("p", "text", text) : el("p", "empty", "(no text)"));

// A button, and on it the key that does the same.
const keyButton = (className, text, key, act) => {
  const made = el("button", className, text);
  made.type = "button";
  made.append(" ", el("kbd", "", key));
  made.addEventListener("click", act);
  return made;
};

// Keys act where nobody is writing; `actOf` finds what a key does.
const onKeys = (actOf) =>
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select")) return;
    const act = actOf(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  });

// What this browser keeps under a name, and the function that writes it down.
const browserStore = (name, blank) => {
  const tryTo = (act) => {
    try {
      return act();
    } catch {
      $("no-store").hidden = false;
      return {};
    }
  };
  const kept = { ...blank, ...tryTo(() => JSON.parse(localStorage.getItem(name) || "{}")) };
  return [kept, () => tryTo(() => localStorage.setItem(name, JSON.stringify(kept)))];
};

// A text as Python writes it into a cell (data.cells, data.spreadsheet): no spreadsheet runs it.
const safe = (text) => {
  const shown = text.replace(/[\0-\x08\x0e-\x1f\x7f\ud800-\udfff]/gu, "\ufffd");
  const formula =
    /^'*([\t\r\n]|[ \t\n\v\f\r\u00a0\u2000-\u200f\u2028\u2029\u3000\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20])/;
  return formula.test(shown) ? `'${shown}` : shown;
};

(() => {
  // An answer is kept by item and by the hash of its texts, so it outlives changes of other items
  // and a page made anew.
  const keyOf = (item) => `${item.id}\n${item.hash}`;
  const columns = [...questions.map(({ key }) => key), "reviewer", "remark", "edit"];
  const blank = Object.fromEntries(columns.map((column) => [column, ""]));
  const [kept, keep] = browserStore(`judgebench review of ${table}`, { reviewer: "", at: "", answers: {} });
  const answerOf = (item) => ({ ...blank, ...kept.answers[keyOf(item)] });
  const isAnswered = (item) => keyOf(item) in kept.answers;
  const change = (item, parts) => {
    const answer = { ...answerOf(item), ...parts };
    const says = columns.some((column) => column !== "reviewer" && answer[column]);
    if (says) kept.answers[keyOf(item)] = answer;
    else delete kept.answers[keyOf(item)];
    keep();
    tell();
  };
  const saveTable = () => {
    const rows = items.map((item) => [item.id, item.hash, ...Object.values(answerOf(item))].map(safe));
    const line = (cells) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join() + "\n";
    const text = "\ufeff" + [["item_id", "content_hash", ...columns], ...rows].map(line).join("");
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = table;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  $("bar").hidden = false;
  $("bar").addEventListener("submit", (event) => event.preventDefault());
  $("save").addEventListener("click", saveTable);

  const wordsOf = (item) => questions.map(({ key }) => answerOf(item)[key]);
  const done = (item) => wordsOf(item).every(Boolean);
  // The first answer to a question says that all is well.
  const state = (item) => {
    if (!done(item)) return "";
    return wordsOf(item).every((word, i) => word === questions[i].answers[0]) ? "good" : "bad";
  };
  const saidOf = (item) => {
    const words = wordsOf(item).filter(Boolean).join(", ");
    const { reviewer } = answerOf(item);
    return (words || "Not decided") + (words && reviewer ? ` by ${reviewer}` : "");
  };

  // --- what is shown of an item ---
  const marked = (pieces, kind) => {
    const text = el("p", "text");
    for (const [piece, changed] of pieces)
      text.append(changed ? el("mark", kind, piece) : piece);
    return text;
  };
  const compared = (texts) => {
    const pair = el("div", "pair");
    texts.forEach(([heading, pieces], i) => {
      const side = el("section", `side ${i ? "new" : "old"}`);
      side.append(el("h2", "", heading), marked(pieces, i ? "new" : "old"));
      pair.append(side);
    });
    return pair;
  };
  const checks = (lines) => {
    const list = el("ul", "checks");
    list.append(...lines.map(([line, failed]) => el("li", failed && "failed", line)));
    return list;
  };
  const facts = (terms) => {
    const list = el("dl", "facts");
    for (const [term, value] of Object.entries(terms)) {
      const shown = el("dd");
      shown.append(Array.isArray(value) ? checks(value) : value);
      list.append(el("dt", "", term), shown);
    }
    return list;
  };
  const section = ([heading, value, folded]) => {
    if (Array.isArray(value)) return [compared(value)];
    if (typeof value === "object") return [facts(value)];
    if (!folded) return [el("h2", "", heading), shownText(value)];
    const box = el("details");
    box.append(el("summary", "", heading), shownText(value));
    return [box];
  };
  const card = (item) => {
    const box = el("article", "card");
    const head = el("header");
    head.append(el("b", "", `${items.indexOf(item) + 1} of ${items.length}`), el("b", "", item.id));
    head.append(el("span", "", item.title));
    box.append(head, ...item.sections.flatMap(section));
    return box;
  };

  // --- what is asked about it ---
  let at =
    items.find((item) => keyOf(item) === kept.at) || items.find((item) => !done(item)) || items[0];
  let asked = 0; // the question that a letter answers
  const answer = (place, word) => {
    const { key } = questions[place];
    const again = answerOf(at)[key] === word;
    asked = again ? place : Math.min(place + 1, questions.length - 1);
    change(at, { [key]: again ? "" : word, reviewer: kept.reviewer });
  };
  const questionBox = (question, place) => {
    const text = at.ask[question.key] || question.text;
    const box = el("div", "question");
    box.id = `question-${place}`;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", text);
    const choices = question.answers.map((word, i) => {
      const made = keyButton(i ? "bad" : "good", word, word[0], () => answer(place, word));
      made.dataset.word = word;
      return made;
    });
    box.append(el("span", "", text), ...choices);
    return box;
  };
  const field = (key, title, rows, start) => {
    const box = el("label", "field", title);
    const text = el("textarea");
    text.id = key;
    text.rows = rows;
    text.value = answerOf(at)[key] || start;
    text.addEventListener("input", () =>
      change(at, { [key]: text.value, reviewer: answerOf(at).reviewer || kept.reviewer }),
    );
    box.append(text);
    return box;
  };
  const stepButton = (id, text, key, act) => {
    const made = keyButton("", text, key, act);
    made.id = id;
    return made;
  };
  const show = (item) => {
    at = item;
    asked = 0;
    if (!at) {
      $("item").replaceChildren(el("p", "empty", "No item is of this kind."));
    } else {
      const box = card(at);
      box.id = "card";
      const steps = el("div", "steps");
      const by = el("p", "by");
      by.id = "by";
      steps.append(
        stepButton("before", "Previous", "←", () => step(-1)),
        stepButton("after", "Next", "→", () => step(1)),
        stepButton("open", "Next to answer", "n", toAnswer),
      );
      box.append(...questions.map(questionBox));
      if (typeof at.edit === "string") box.append(field("edit", "Your text", 6, at.edit));
      box.append(field("remark", "Remark", 2, ""), by, steps);
      $("item").replaceChildren(box);
      kept.at = keyOf(at);
      keep();
    }
    tell();
  };
  const passes = (item) => {
    const wanted = $("filter").value;
    if (wanted === "undecided") return !done(item);
    return !wanted || wordsOf(item).includes(wanted);
  };
  const next = (direction) => {
    for (let i = items.indexOf(at) + direction; i >= 0 && i < items.length; i += direction)
      if (passes(items[i])) return items[i];
    return undefined;
  };
  const goTo = (item) => {
    if (!item) return;
    show(item);
    if ($("item").getBoundingClientRect().top < 0) $("strip").scrollIntoView();
  };
  const step = (direction) => goTo(at && next(direction));
  const toAnswer = () => {
    const place = items.indexOf(at);
    goTo([...items.slice(place + 1), ...items.slice(0, place)].find((item) => !done(item)));
  };

  // --- what stands around the item ---
  const strip = items.map((item, i) => {
    const made = el("button");
    made.type = "button";
    made.title = `${i + 1}: ${item.id}`;
    made.addEventListener("click", () => show(item));
    $("strip").append(made);
    return made;
  });
  const SIGNS = { good: "✓", bad: "✕", "": "" };
  const tellStrip = () => {
    items.forEach((item, i) => {
      strip[i].className = state(item) + (passes(item) ? "" : " out");
      strip[i].textContent = SIGNS[state(item)];
      strip[i].setAttribute("aria-label", `Item ${i + 1}, ${item.id}: ${saidOf(item)}`);
      if (item === at) strip[i].setAttribute("aria-current", "true");
      else strip[i].removeAttribute("aria-current");
    });
  };
  const tellItem = () => {
    if (!at) return;
    $("card").classList.toggle("done", done(at));
    $("before").disabled = !next(-1);
    $("after").disabled = !next(1);
    $("by").textContent = saidOf(at);
    questions.forEach(({ key }, place) => {
      const box = $(`question-${place}`);
      box.classList.toggle("at", place === asked);
      for (const made of box.querySelectorAll("button"))
        made.setAttribute("aria-pressed", answerOf(at)[key] === made.dataset.word);
    });
  };
  const tell = () => {
    const count = (holds) => items.filter(holds).length;
    const counted = [`${count(done)} of ${items.length} items answered`];
    if (questions.length === 1)
      for (const word of questions[0].answers)
        counted.push(`${count((item) => wordsOf(item)[0] === word)} ${word}`);
    $("progress").textContent = counted.join(" · ");
    for (const kind of ["good", "bad"]) {
      const share = count((item) => state(item) === kind) / (items.length || 1);
      $(`n-${kind}`).style.width = `${100 * share}%`;
    }
    $("reviewer").classList.toggle("wanted", !kept.reviewer);
    tellStrip();
    tellItem();
  };

  $("reviewer").value = kept.reviewer;
  $("reviewer").addEventListener("input", () => {
    kept.reviewer = $("reviewer").value.trim();
    keep();
    tell();
  });
  // Who gives a name late has said so of what was decided here before.
  $("reviewer").addEventListener("change", () => {
    for (const item of items)
      if (isAnswered(item) && !answerOf(item).reviewer) change(item, { reviewer: kept.reviewer });
  });
  $("filter").addEventListener("change", () => {
    show(at && passes(at) ? at : items.find(passes));
  });
  const choose = (place) => {
    asked = Math.max(0, Math.min(questions.length - 1, place));
    tell();
  };
  const ACTS = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    ArrowUp: () => choose(asked - 1),
    ArrowDown: () => choose(asked + 1),
    n: toAnswer,
  };
  onKeys((key) => {
    const word = questions[asked].answers.find((one) => one[0] === key);
    return at && (word ? () => answer(asked, word) : ACTS[key]);
  });

  // --- on paper: every item that the filter shows ---
  window.addEventListener("beforeprint", () => {
    for (const item of items.filter(passes)) {
      const shown = card(item);
      const { remark } = answerOf(item);
      shown.append(el("p", "by", saidOf(item) + (remark ? `: ${remark}` : "")));
      $("print").append(shown);
    }
  });
  window.addEventListener("afterprint", () => $("print").replaceChildren());
  show(at);
})();
