// Text of the data reaches the page through textContent and value only, never as markup.
(() => {
  // A heading that may break after the signs inside a model's name.
  const named = (text, className) => {
    const made = el("th", className);
    const parts = text.split(/(?<=[/:_.@-])(?=\w)/);
    parts.forEach((part, i) => made.append(...(i ? [el("wbr")] : []), part));
    return made;
  };
  for (const form of document.querySelectorAll(".choose")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  // --- one panel at a time ---
  const panels = [...document.querySelectorAll(".panel")];
  const showPanel = () => {
    const statistic = $("choose-statistic").value;
    const mine = panels.filter((p) => p.dataset.statistic === statistic);
    const wanted = mine.find((p) => p.dataset.failures === $("choose-failures").value);
    for (const panel of panels) panel.hidden = panel !== (wanted || mine[0]);
    $("panel-note").textContent =
      mine.length === 1 ? "No verdict is missing here: all three ways agree." : "";
  };
  $("choose-statistic").addEventListener("change", showPanel);
  $("choose-failures").addEventListener("change", showPanel);
  showPanel();

  // A tap shows what a pointer sees as a tooltip.
  $("alignment").addEventListener("click", (event) => {
    const told = event.target.closest("[title]");
    $("detail").hidden = !told;
    if (told) $("detail").textContent = told.title;
  });
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  // --- disagreements ---
  const data = JSON.parse($("data").textContent);
  const PAGE = 20;
  const SIGNS = { severe: "▲", mild: "▼", other: "≠", missing: "✕" };
  const SAID = {
    severe: "more severe than the human truth",
    mild: "less severe than the human truth",
    other: "different from the human truth",
    missing: "no label",
  };

  // How one judge's label stands to the truth: "", severe, mild, other or missing.
  const direction = (item, judge, metric) => {
    const truth = item.truth[metric.id];
    const verdict = item.verdicts[judge];
    if (truth === undefined || !verdict) return "";
    const label = verdict.labels[metric.id];
    if (label === undefined || label === metric.abstain) return "missing";
    if (label === truth) return "";
    const [a, b] = [metric.labels.indexOf(label), metric.labels.indexOf(truth)];
    if (!metric.ordinal || a < 0 || b < 0) return "other";
    return a > b ? "severe" : "mild";
  };

  const choices = (select, pairs) => {
    for (const [value, text] of pairs) {
      const option = el("option", "", text);
      option.value = value;
      select.append(option);
    }
  };
  choices($("by-judge"), data.judges.map((name) => [name, name]));
  choices($("by-metric"), data.metrics.map((metric) => [metric.id, metric.title]));

  const passes = (item) => {
    const text = $("by-text").value.trim().toLowerCase();
    if (text) {
      const all = [item.id, item.system, item.question, item.text, item.reference || ""];
      if (!all.join("\n").toLowerCase().includes(text)) return false;
    }
    const judges = $("by-judge").value ? [$("by-judge").value] : data.judges;
    const metrics = data.metrics.filter(
      (metric) => !$("by-metric").value || metric.id === $("by-metric").value,
    );
    const wanted = $("by-direction").value;
    return judges.some((judge) =>
      metrics.some((metric) => {
        const found = direction(item, judge, metric);
        return wanted ? found === wanted : found !== "";
      }),
    );
  };

  const passage = (heading, text) => {
    const box = el("div");
    box.append(el("h4", "", heading), el("p", "text", text));
    return box;
  };

  const verdictCell = (item, judge, metric) => {
    const found = direction(item, judge, metric);
    const verdict = item.verdicts[judge];
    if (!verdict) return el("td", "no-label", "not judged");
    const label = verdict.labels[metric.id];
    const cell = el("td", found === "missing" || label === undefined ? "no-label" : found && "differs");
    if (found) {
      const sign = el("span", "sign", SIGNS[found]);
      sign.title = SAID[found];
      sign.setAttribute("aria-label", SAID[found]);
      cell.append(sign);
    }
    cell.append(label === undefined ? verdict.status : label);
    return cell;
  };

  const labelTable = (item) => {
    const annotators = [
      ...new Set(data.metrics.flatMap((metric) => Object.keys(item.human[metric.id] || {}))),
    ].sort();
    const table = el("table");
    const head = el("tr");
    head.append(el("th", "stub", "Metric"), el("th", "truth", "Human truth"));
    for (const name of [...annotators, ...data.judges]) head.append(named(name, ""));
    const body = el("tbody");
    for (const metric of data.metrics) {
      const row = el("tr");
      row.append(named(metric.title, "stub"));
      row.append(el("td", "truth", item.truth[metric.id] ?? "–"));
      const human = item.human[metric.id] || {};
      for (const name of annotators) row.append(el("td", "", human[name] ?? "–"));
      for (const name of data.judges) row.append(verdictCell(item, name, metric));
      body.append(row);
    }
    const thead = el("thead");
    thead.append(head);
    table.append(thead, body);
    const wide = el("div", "wide");
    wide.append(table);
    return wide;
  };

  const failures = (item) =>
    Object.entries(item.verdicts)
      .filter(([, verdict]) => verdict.status !== "ok")
      .map(([judge, verdict]) => {
        const box = el("details", "raw");
        const why = verdict.reason ? `: ${verdict.reason}` : "";
        box.append(el("summary", "", `${judge} gave no usable verdict (${verdict.status})${why}`));
        const raw = verdict.raw || "(no reply)";
        box.append(el("h4", "", "Raw reply"), el("p", "text", raw));
        if (verdict.cut) box.append(el("p", "under", `Cut; the reply has ${verdict.cut} characters.`));
        return box;
      });

  const card = (item) => {
    const box = el("article", "item");
    const header = el("header");
    header.append(el("b", "", item.id));
    if (item.system) header.append(el("span", "", `answer by ${item.system}`));
    header.append(el("span", "", `distance ${Number(item.distance.toFixed(2))}`));
    const texts = el("div", "texts");
    if (item.question) texts.append(passage("Question", item.question));
    texts.append(passage("Answer", item.text));
    if (item.reference !== null) texts.append(passage("Reference", item.reference));
    box.append(header, texts, labelTable(item), ...failures(item));
    return box;
  };

  let found = [];
  let shown = 0;
  const more = () => {
    const next = found.slice(shown, shown + PAGE);
    $("items").append(...next.map(card));
    shown += next.length;
    $("more").hidden = shown >= found.length;
    $("how-many").textContent = `${shown} of ${found.length} shown`;
  };
  const filter = () => {
    found = data.items.filter(passes);
    shown = 0;
    $("items").replaceChildren();
    more();
  };
  for (const id of ["by-judge", "by-metric", "by-direction"]) $(id).addEventListener("change", filter);
  $("by-text").addEventListener("input", filter);
  $("more").addEventListener("click", more);
  filter();
})();
