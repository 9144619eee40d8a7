(() => {
  const items = data.items;
  const BLANK = { decision: "", reviewer: "", remark: "" };
  const WORDS = { accept: "Accepted", reject: "Rejected", "": "Not decided" };

  // --- answers: those of the table, and over them those of this browser ---
  // An answer is kept by item and by the hash of its texts, so it outlives changes of other items.
  const keyOf = (item) => `${item.id}\n${item.hash}`;
  const same = (a, b) => Object.keys(BLANK).every((part) => a[part] === b[part]);
  const [kept, keep] = browserStore(`judgebench review of ${data.name}`, {
    reviewer: "", at: "", answers: {},
  });
  const answerOf = (item) => ({ ...item.answer, ...kept.answers[keyOf(item)] });
  const isOwn = (item) => !same(answerOf(item), item.answer);
  const change = (item, parts) => {
    const answer = { ...answerOf(item), ...parts };
    const says = answer.decision || answer.remark;
    kept.answers[keyOf(item)] = says ? answer : { ...BLANK };
    if (!isOwn(item)) delete kept.answers[keyOf(item)];
    keep();
    tell();
  };
  // What the table holds by now is the table's: a later change of it must show.
  for (const item of items) if (!isOwn(item)) delete kept.answers[keyOf(item)];

  saveAsTable(() => [
    ...items.map((item) => {
      const answer = answerOf(item);
      return data.columns.map((column, i) =>
        column in BLANK ? safe(answer[column]) : item.cells[i],
      );
    }),
    ...data.kept,
  ]);

  // --- one item ---
  const marked = (pieces, kind) => {
    const text = el("p", "text");
    for (const [piece, changed] of pieces) {
      if (changed) text.append(el("mark", kind, piece));
      else text.append(piece);
    }
    return text;
  };
  const side = (heading, pieces, kind, className) => {
    const box = el("section", className);
    box.append(el("h3", "", heading), marked(pieces, kind));
    return box;
  };
  const named = (labels) =>
    Object.entries(labels).map(([metric, label]) => `${metric}: ${label}`).join("; ");
  const worsens = (item) => Object.keys(item.must_worsen).length > 0;
  const question = (item) => {
    if (worsens(item)) return "Is the sound answer right, and the altered one wrong as stated?";
    if (Object.keys(item.demand).length)
      return "Does the altered answer still give the same advice, whatever it tells a judge?";
    return "Do both answers say the same, and is only the wording or the layout different?";
  };
  const expectation = (item) =>
    worsens(item)
      ? `${named(item.must_worsen)}, or worse`
      : "the same as of the sound answer" +
        (Object.keys(item.demand).length ? `; the text asks for ${named(item.demand)}` : "");
  const checks = (item) => {
    if (!item.checks.length) return null;
    const list = el("ul", "checks");
    for (const [name, reason] of item.checks) {
      const text = reason ? `✕ ${name}: ${reason}` : `✓ ${name}`;
      list.append(el("li", reason && "failed", text));
    }
    return list;
  };
  const facts = (item) => {
    const list = el("dl", "facts");
    for (const [term, value, className] of [
      ["True claim", item.true_claim, "claim-true"],
      ["False claim", item.false_claim, "claim-false"],
      ["Why plausible", item.why_plausible],
      ["Source", item.source],
      ["Verdict must be", expectation(item)],
      ["Checks", checks(item)],
    ]) {
      if (!value) continue;
      const shown = el("dd", className);
      shown.append(value);
      list.append(el("dt", "", term), shown);
    }
    return list;
  };
  const card = (item) => {
    const box = el("article", "card");
    const head = el("header");
    head.append(el("b", "", `${items.indexOf(item) + 1} of ${items.length}`), el("b", "", item.id));
    for (const text of [item.area, `recipe ${item.recipe}`, item.maker])
      if (text) head.append(el("span", "", text));
    const pair = el("div", "pair");
    pair.append(
      side("Sound answer", item.parent, "old", "side"),
      side("Altered answer", item.text, "new", "side altered"),
    );
    box.append(head, ...(item.question ? [el("h2", "", item.question)] : []), pair, facts(item));
    return box;
  };

  // --- deciding ---
  let at =
    items.find((item) => keyOf(item) === kept.at) ||
    items.find((item) => !answerOf(item).decision) ||
    items[0];
  const decide = (decision) => {
    if (!at) return;
    const taken = answerOf(at).decision === decision ? "" : decision;
    change(at, { decision: taken, reviewer: kept.reviewer });
  };
  const controls = () => {
    const row = el("div", "decide");
    row.append(
      keyButton("accept", "Accept", "a", () => decide("accept")),
      keyButton("reject", "Reject", "r", () => decide("reject")),
      keyButton("step before", "Previous", "←", () => step(-1)),
      keyButton("step after", "Next", "→", () => step(1)),
    );
    const remark = el("label", "remark", "Remark");
    const field = el("textarea");
    field.id = "remark";
    field.rows = 2;
    field.value = answerOf(at).remark;
    field.addEventListener("input", () => {
      const reviewer = answerOf(at).reviewer || kept.reviewer;
      change(at, { remark: field.value, reviewer });
    });
    remark.append(field);
    const by = el("p", "by");
    by.id = "by";
    return [row, remark, by];
  };
  const show = (item) => {
    at = item;
    if (!at) {
      $("item").replaceChildren(el("p", "empty", "No item is of this kind."));
    } else {
      const shown = card(at);
      shown.append(el("p", "ask", question(at)), ...controls());
      $("item").replaceChildren(shown);
      kept.at = keyOf(at);
      keep();
    }
    tell();
  };
  const passes = (item) => {
    const wanted = $("filter").value;
    return !wanted || (answerOf(item).decision || "undecided") === wanted;
  };
  const next = (direction) => {
    for (let i = items.indexOf(at) + direction; i >= 0 && i < items.length; i += direction)
      if (passes(items[i])) return items[i];
    return undefined;
  };
  const step = (direction) => {
    const found = at && next(direction);
    if (!found) return;
    show(found);
    if ($("item").getBoundingClientRect().top < 0) $("strip").scrollIntoView();
  };

  // --- what stands around the item ---
  const strip = items.map((item, i) => {
    const made = el("button");
    made.type = "button";
    made.addEventListener("click", () => show(item));
    made.title = `${i + 1}: ${item.id}`;
    $("strip").append(made);
    return made;
  });
  const SIGNS = { accept: "✓", reject: "✕", "": "" };
  const tellStrip = () => {
    items.forEach((item, i) => {
      const { decision } = answerOf(item);
      strip[i].className = (decision && `strip-${decision}`) + (passes(item) ? "" : " out");
      strip[i].textContent = SIGNS[decision];
      strip[i].setAttribute("aria-label", `Item ${i + 1}, ${item.id}: ${WORDS[decision]}`);
      if (item === at) strip[i].setAttribute("aria-current", "true");
      else strip[i].removeAttribute("aria-current");
    });
  };
  const tellItem = () => {
    if (!at) return;
    const { decision, reviewer } = answerOf(at);
    for (const word of ["accept", "reject"])
      document.querySelector(`.decide .${word}`).setAttribute("aria-pressed", decision === word);
    document.querySelector(".decide .before").disabled = !next(-1);
    document.querySelector(".decide .after").disabled = !next(1);
    const who = decision && reviewer ? ` by ${reviewer}` : "";
    $("by").textContent = WORDS[decision] + who;
  };
  const tell = () => {
    const count = (word) => items.filter((item) => answerOf(item).decision === word).length;
    const [accepted, rejected] = [count("accept"), count("reject")];
    $("progress").textContent =
      `${accepted + rejected} of ${items.length} decided · ` +
      `${accepted} accepted · ${rejected} rejected`;
    $("n-accepted").style.width = `${(100 * accepted) / (items.length || 1)}%`;
    $("n-rejected").style.width = `${(100 * rejected) / (items.length || 1)}%`;
    $("reviewer").classList.toggle("wanted", !kept.reviewer);
    const own = items.filter(isOwn).length;
    $("differs").hidden = !own;
    $("how-many").textContent =
      own === 1
        ? "1 answer of this browser is not in the table that this page was made from."
        : `${own} answers of this browser are not in the table that this page was made from.`;
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
      if (isOwn(item) && !answerOf(item).reviewer) change(item, { reviewer: kept.reviewer });
  });
  $("filter").addEventListener("change", () => {
    show(at && passes(at) ? at : items.find(passes));
  });
  $("forget").addEventListener("click", () => {
    if (!confirm("Go back to what the table says? Answers that were not saved are lost.")) return;
    for (const item of items) delete kept.answers[keyOf(item)];
    keep();
    show(at);
  });
  const ACTS = {
    a: () => decide("accept"),
    r: () => decide("reject"),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
  };
  onKeys((key) => ACTS[key]);

  // --- on paper: every item that the filter shows ---
  window.addEventListener("beforeprint", () => {
    for (const item of items.filter(passes)) {
      const { decision, reviewer, remark } = answerOf(item);
      const shown = card(item);
      const who = decision && reviewer ? ` by ${reviewer}` : "";
      shown.append(el("p", "by", WORDS[decision] + who + (remark ? `: ${remark}` : "")));
      $("print").append(shown);
    }
  });
  window.addEventListener("afterprint", () => $("print").replaceChildren());
  show(at);
})();
