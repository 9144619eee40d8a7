// The study lead's page: figures that are read again every 30 seconds, and one disagreement after the
// other to adjudicate. Text of the study reaches the page through textContent and value only.
(() => {
  const EVERY_MS = 30000;
  const SOON_MS = 6000; // the server computes figures anew after 5 seconds at the earliest
  let soon = 0;
  const REASONS = { a: "ambiguous", g: "guideline gap", s: "slip", e: "genuine" };
  const ABOUT = {
    ambiguous: "the item can be read both ways", "guideline gap": "the guidelines do not say",
    slip: "somebody made a mistake", genuine: "experts see it differently",
  };
  let figures = null;
  let cases = [];
  let at = -1; // the disagreement that is shown
  let chosen = null; // the label that is chosen there
  const settled = new Map(); // adjudications of this page, which the server may not count yet

  // --- small drawings and tables -----------------------------------------------------------------
  const drawn = (tag, attributes, ...inside) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const number = (n) => n.toLocaleString("en-GB");
  const places = (value, n = 2) => (value === null ? "–" : (Math.round(value * 10 ** n) / 10 ** n + 0).toFixed(n).replace("-", "−"));
  const seconds = (value) => (value === null ? "–" : `${number(Math.round(value))} s`);
  const percent = (n, of) => `${of ? Math.round((100 * n) / of) : 0} %`;
  const counted = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
  const title = (metric) => figures.metrics[metric] || metric;
  // Cells are texts, numbers, [element…] or elements; the first of a row names it.
  const table = (columns, rows) => {
    const made = el("table");
    const row = (cells, head) => {
      const line = el("tr");
      cells.forEach((cell, i) => {
        const box = head || i === 0 ? born("th") : el("td");
        if (head || i === 0) box.scope = head ? "col" : "row";
        const value = head && rows.length ? rows[0][i] : cell;
        if (/^[\d.,–]+( s| to \d+)?$/.test(value)) box.className = "n";
        box.append(...(Array.isArray(cell) ? cell : [typeof cell === "number" ? number(cell) : cell]));
        line.append(box);
      });
      return line;
    };
    const [head, body] = [el("thead"), el("tbody")];
    head.append(row(columns, true));
    body.append(...rows.map((cells) => row(cells)));
    made.append(head, body);
    return made;
  };
  // Shares of a whole as one bar: [[name, count, class]…].
  const stack = (label, parts) => {
    const total = parts.reduce((sum, [, n]) => sum + n, 0);
    const shares = parts.filter(([, n]) => n).map(([name, n]) => `${name} ${percent(n, total)}`);
    let x = 0;
    const boxes = parts.map(([name, n, className]) => {
      const width = total ? (100 * n) / total : 0;
      const tip = drawn("title", {}, `${name}: ${number(n)}`);
      const box = drawn("rect", { x, y: 0, width, height: 10, class: className }, tip);
      x += width;
      return box;
    });
    const shape = { class: "stack", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img" };
    return drawn("svg", { ...shape, "aria-label": `${label}: ${shares.join(", ") || "nothing yet"}` }, ...boxes);
  };
  // Estimates of both rounds on one scale from `least` to 1.
  const intervals = (found, least) => {
    const x = (value) => 8 + (224 * (Math.max(least, value) - least)) / (1 - least);
    const inside = [drawn("line", { class: "rail", x1: 8, x2: 232, y1: 12, y2: 12 })];
    for (const tick of [0, 0.5, 1])
      inside.push(drawn("line", { class: "tick", x1: x(tick), x2: x(tick), y1: 9, y2: 15 }));
    const known = found.filter(({ value }) => value !== null);
    known.forEach(({ round, value, low, high }) => {
      const y = known.length < 2 ? 12 : round === "main" ? 7 : 18;
      const marks = [drawn("circle", { cx: x(value), cy: y, r: 4 })];
      if (low !== null) marks.unshift(drawn("line", { x1: x(low), x2: x(high), y1: y, y2: y }));
      inside.push(drawn("g", { class: round }, ...marks));
    });
    return drawn("svg", { class: "interval", viewBox: "0 0 240 24", "aria-hidden": "true" }, ...inside);
  };

  // --- the figures -------------------------------------------------------------------------------
  const tile = (big, small) => {
    const box = el("div", "tile");
    box.append(el("b", "", big), el("span", "", small));
    return box;
  };
  const showProgress = () => {
    const { main, calibration } = figures.rounds;
    const value = figures.seconds_per_item;
    $("tiles").replaceChildren(
      tile(`${number(main.complete)} of ${number(main.of)}`, `items complete (${percent(main.complete, main.of)}): all their annotators are done`),
      ...(calibration.of ? [tile(`${number(calibration.complete)} of ${number(calibration.of)}`, "items of the calibration round complete")] : []),
      tile(seconds(value), value === null ? "no item is done yet" : "per item, the median"),
    );
    const states = ["done", "begun", "skipped", "new"];
    $("people").replaceChildren(
      table(["Annotator", "State of the items", "Done", "Of", "Skipped", "Cannot tell", "Time per item"], figures.people.map((one) => [
        one.name, [stack(one.name, states.map((state) => [state, one[state], `${state}-part`]))],
        one.done, one.of, one.skipped, one.cannot_tell, seconds(one.seconds_per_item),
      ])),
    );
  };
  const UNITS = { alpha: "items", observed: "pairs of labels", hit: "sets of labels", coverage: "sets of labels" };
  const showAgreement = () => {
    const find = (metric, statistic) => figures.agreement.filter((one) => one.metric === metric && one.statistic === statistic);
    const cell = (found, least) => {
      const box = el("div", "estimates");
      box.append(intervals(found, least));
      for (const { round, statistic, value, low, high, reason, n } of found) {
        if (!figures.rounds[round].of) continue;
        const range = low === null ? "" : ` [${places(low)}, ${places(high)}]`;
        const figure = value === null ? "–" : `${places(value)}${range}, n\u00a0=\u00a0${number(n)} ${UNITS[statistic]}`;
        const line = el(round === "main" ? "span" : "small", "", round === "main" ? figure : `calibration ${figure}`);
        line.title = value === null ? reason : "";
        box.append(line);
      }
      return [box];
    };
    const metrics = [...new Set(figures.agreement.map(({ metric }) => metric))];
    const ofSets = metrics.filter((metric) => find(metric, "hit").length);
    const unknown = figures.agreement.filter(({ value, round }) => value === null && figures.rounds[round].of);
    const named = (of) => [...new Set(of.map(({ metric }) => title(metric)))];
    const undefinedIn = (reason) => ["main", "calibration"].map((name) => [
      name, named(unknown.filter((one) => one.reason === reason && one.round === name)).join(", "),
    ]).filter(([, of]) => of);
    $("undefined").replaceChildren(...[...new Set(unknown.map(({ reason }) => reason))].map((reason) => {
      const found = undefinedIn(reason);
      const same = new Set(found.map(([, of]) => of)).size === 1;
      const all = (of) => (of === metrics.map(title).join(", ") ? "all metrics" : of);
      const where = same ? [`${all(found[0][1])} (${found.map(([name]) => name).join(" and ")} round)`]
        : found.map(([name, of]) => `${all(of)} (${name} round)`);
      return born("p", "note", `– for ${where.join("; ")}: ${reason}.`);
    }));
    const agreed = (of, ...columns) => of.length ? [table(["Metric", ...columns.map(([head]) => `${head} (ticks: 0, 0.5, 1)`)], of.map((metric) => [
      title(metric), ...columns.map(([, statistic, least]) => cell(find(metric, statistic), least)),
    ]))] : [];
    $("agreed").replaceChildren(
      ...agreed(metrics.filter((metric) => !ofSets.includes(metric)), ["Krippendorff's α", "alpha", -0.25], ["Observed agreement", "observed", 0]),
      ...agreed(ofSets, ["Hit: labels that half of the others give", "hit", 0], ["Coverage: such labels given", "coverage", 0]),
    );
  };
  const shade = (i, k) => `c${k < 2 ? 0 : Math.round((4 * i) / (k - 1))}`;
  const legend = (labels) => {
    const made = el("ul", "legend");
    made.append(...labels.map((label, i) => {
      const item = el("li");
      item.append(el("span", `swatch ${shade(i, labels.length)}`), born("span", "", label));
      return item;
    }));
    return made;
  };
  const showUse = () => {
    const odd = figures.distribution.flatMap((one) => one.odd);
    $("odd").replaceChildren(...odd.map((sentence) => born("p", "warn", sentence)));
    const some = figures.distribution.some(({ people }) => Object.keys(people).length);
    if (!odd.length) $("odd").append(el("p", "note", some ? "No annotator stands out." : "No label yet."));
    $("uses").replaceChildren(
      ...figures.distribution.map(({ metric, labels, people }) => {
        const box = el("div");
        box.append(born("h3", "", title(metric)));
        for (const { name } of figures.people) {
          const counts = people[name] || [];
          const line = el("div", "use");
          const parts = counts.map((n, i) => [labels[i], n, shade(i, labels.length)]);
          line.append(born("span", "", name), stack(name, parts), el("span", "", number(counts.reduce((a, b) => a + b, 0))));
          line.firstChild.title = name;
          box.append(line);
        }
        box.append(legend(labels));
        return box;
      }),
    );
  };
  const showRest = () => {
    const { words } = figures;
    kept($("said"), words.map(({ screen, annotator, text, answers, at: day }) => ({
      screen, annotator, head: `${screen}, ${annotator}, ${day.slice(0, 10)}`,
      texts: [text, ...answers.map((answer) => `You: ${answer}`)],
    })));
    if (!words.length) $("said").append(el("p", "note", "No remark yet."));
  };

  // --- anchors -----------------------------------------------------------------------------------
  const showAnchors = () => {
    const { anchors, missed } = figures;
    $("anchors").hidden = $("to-anchors").hidden = !anchors.length;
    const hits = (who, metric) => {
      const found = anchors.find((one) => one.who === who && one.metric === metric);
      return found ? `${number(Math.round(found.value * found.n))} of ${number(found.n)} [${places(found.low)}, ${places(found.high)}]` : "–";
    };
    const lines = [...new Map(anchors.map(({ who, metric }) => [`${who} ${metric}`, [who, metric]])).values()];
    $("hits").replaceChildren(table(["Annotator", "Metric", "Right labels given"], lines.map(([who, metric]) => [
      who, born("span", "", title(metric)), hits(who, metric),
    ])));
    kept($("missed"), missed.map(({ screen, metric, known, said }) => {
      const others = Object.entries(said).map(([who, label]) => `${label || "cannot tell"} by ${who}`).join(", ");
      const texts = [`Right label: ${known}. Given: ${others}.`];
      return { screen, head: `${screen}, ${title(metric)}`, texts };
    }));
    if (anchors.length && !missed.length) $("missed").append(el("p", "note", "Nobody missed one."));
  };
  // An answer to an annotator about an item, which may be sent back with it.
  const noteBox = (screen, annotator) => {
    const [box, text, status] = [el("div", "answer"), el("input"), el("p", "note")];
    status.setAttribute("role", "status");
    text.maxLength = 10000;
    text.dir = "auto";
    text.setAttribute("aria-label", `Answer to ${annotator} on ${screen}`);
    const send = (back) => async () => {
      status.textContent = text.value.trim() ? "" : back ? "Write why it is to be labelled again." : "Write an answer first.";
      if (status.textContent) return text.focus();
      try {
        await ask("api/lead/note", { annotator, screen, text: text.value, send_back: back });
        text.value = "";
        status.textContent = back ? `Sent back to ${annotator}, to be labelled again.` : "Sent.";
        clearTimeout(soon);
        soon = setTimeout(refresh, SOON_MS);
      } catch (error) {
        failed(error, "This was not sent: ", status);
      }
    };
    box.append(text, button("Answer", "", send(false)), button("Send back", "", send(true)), status);
    return box;
  };
  // Lines about items, each of which opens the item's texts; what is open stays so.
  const kept = (place, lines) => {
    const open = new Set([...place.querySelectorAll("details[open]")].map((box) => box.dataset.place));
    place.replaceChildren(...lines.map(({ screen, annotator, head, texts }) => {
      const [line, item] = [el("div", "said"), el("details")];
      item.dataset.place = `${head} ${texts}`;
      item.append(born("summary", "", head));
      item.addEventListener("toggle", () => item.open && item.children.length < 2 && showItem(item, screen));
      item.open = open.has(item.dataset.place);
      line.append(item, ...texts.map((text) => born("p", "text", text)));
      if (annotator) line.append(noteBox(screen, annotator));
      return line;
    }));
  };

  // --- item by item ------------------------------------------------------------------------------
  const SIGNS = { done: "●", begun: "◐", skipped: "»", new: "○" };
  const PAGE = 50;
  let most = PAGE;
  let items = [];
  const choices = (id, options) => {
    const chosen = $(id).value;
    const made = options.map(([value, text]) => {
      const option = born("option", "", text);
      option.value = value;
      return option;
    });
    if ([...$(id).options].map((one) => one.value).join("\n") === made.map((one) => one.value).join("\n")) return;
    $(id).replaceChildren(...made);
    $(id).value = options.some(([value]) => value === chosen) ? chosen : options[0][0];
  };
  const showFilter = () => {
    choices("by-state", [["", "any"], ...Object.keys(SIGNS).map((state) => [state, state])]);
    choices("by-annotator", [["", "any"], ...figures.people.map(({ name }) => [name, name])]);
  };
  const textOf = (field, label) => {
    const text = (value) => field.options.find((option) => option.value === value)?.text || value;
    return givenIn(field, label).map(text).join(BETWEEN);
  };
  const detail = (one, width) => {
    const [row, cell, pair] = [el("tr", "detail"), el("td"), el("div", "pair")];
    const [texts, said] = [el("div", "texts"), el("div")];
    cell.colSpan = width;
    for (const section of one.sections) texts.append(born("h3", "", section.heading), textBox(section));
    for (const field of one.fields) {
      const { key, title: name } = field;
      const words = (label) => (label === "" ? "cannot tell" : textOf(field, label));
      const list = el("ul", one.differ.includes(key) ? "given" : "same");
      for (const [who, labels] of Object.entries(one.labels))
        if (typeof labels[key] === "string") list.append(born("li", "", `${who}: ${words(labels[key])}`));
      if (list.children.length) said.append(born("b", "", name), list);
    }
    for (const [who, remark] of Object.entries(one.remarks)) said.append(born("p", "text", `${who}: “${remark}”`));
    for (const { annotator, text, sent_back: back } of one.notes) said.append(born("p", "text", `You to ${annotator}: “${text}”${back ? " (sent back)" : ""}`));
    if (!said.children.length) said.append(el("p", "note", "No label yet."));
    for (const [who, state] of Object.entries(one.states))
      if (state !== "new") said.append(el("small", "", `To ${who}`), noteBox(one.screen, who));
    pair.append(texts, said);
    cell.append(pair);
    row.append(cell);
    return row;
  };
  const itemRow = (one, people) => {
    const open = el("button", "open");
    open.type = "button";
    open.setAttribute("aria-expanded", "false");
    const excerpt = one.text.replace(/\s+/g, " ").slice(0, 60);
    open.append(`${one.screen} `, born("small", "", excerpt));
    const isOpen = () => open.getAttribute("aria-expanded") === "true";
    open.addEventListener("click", async () => {
      const line = open.closest("tr");
      open.setAttribute("aria-expanded", String(!isOpen()));
      if (line.nextSibling?.className === "detail") return line.nextSibling.remove();
      try {
        const whole = await ask(`api/lead/item/${one.screen}`);
        if (isOpen()) line.after(detail(whole, people.length + 3));
      } catch (error) {
        failed(error, "The item cannot be shown: ", $("found"));
      }
    });
    const states = people.map((who) => {
      const state = one.states[who];
      const sign = el("span", `s-${state}`, SIGNS[state] || "");
      if (!state) return [sign];
      sign.setAttribute("role", "img");
      sign.setAttribute("aria-label", state);
      sign.title = `${who}: ${state}`;
      return [sign];
    });
    return [[open], one.round, ...states, one.differ ? "≠" : ""];
  };
  const loadItems = async () => {
    showFilter();
    items = await ask("api/lead/items");
    showItems();
  };
  const fits = ({ screen, states, differ, text }) => {
    const [state, who] = [$("by-state").value, $("by-annotator").value];
    const own = who ? [states[who]].filter(Boolean) : Object.values(states);
    const isState = state ? own.includes(state) : own.length || !who;
    const isText = `${screen} ${text}`.toLowerCase().includes($("by-text").value.toLowerCase());
    return isState && isText && (differ || !$("by-differ").checked);
  };
  const showItems = () => {
    const found = items.filter(fits);
    const shown = found.slice(0, most);
    const people = figures.people.map(({ name }) => name);
    $("found").textContent = shown.length < found.length ? `${number(shown.length)} of ${counted(found.length, "item")} are shown: filter, or show more.` : `${counted(found.length, "item")}.`;
    $("matrix").replaceChildren(table(["Item", "Round", ...people, "Differ"], shown.map((one) => itemRow(one, people))));
    if (shown.length < found.length) $("matrix").append(button(`Show ${number(PAGE)} more`, "", () => { most += PAGE; showItems(); }));
  };

  // --- links and files ---------------------------------------------------------------------------
  let accesses = "";
  const showAccess = (access) => {
    const now = JSON.stringify([access, figures.left]);
    if (accesses === now) return; // nobody loses the button that they are on
    accesses = now;
    $("accesses").replaceChildren(table(["Annotator", "Access", "Link", "Access ends", "Leaves"], figures.people.map(({ name }) => [
      name, access[name], [button("New link", "", () => person("link", name))],
      [sure("Revoke", `End the access of ${name}`, () => person("revoke", name))],
      figures.left.includes(name) ? "has left"
        : [sure("Hand over", `Give what ${name} has not begun to the others`, () => person("hand_over", name))],
    ])));
  };
  // What the lead does about an annotator; who is added, or asks for one, gets a link.
  const person = async (what, name) => {
    try {
      const { token, facts, access } = await ask("api/lead/person", { act: what, name });
      $("link").hidden = !token;
      $("link-of").textContent = `Link of ${name}:`;
      $("link-text").value = token ? `${location.origin}/#${token}` : "";
      $("copied").textContent = "";
      $("facts").textContent = (facts || []).join("; ");
      if (what === "add") $("add-name").value = "";
      if (what === "add" || what === "hand_over") {
        clearTimeout(soon);
        soon = setTimeout(refresh, SOON_MS);
      } else showAccess(access);
      if (token) $("copy").focus();
    } catch (error) {
      failed(error, "This failed: ", $("facts"));
    }
  };
  // A button that asks once more before it acts.
  const sure = (text, question, act) => {
    const made = button(text, "", () => {
      if (made.dataset.sure) return act();
      made.dataset.sure = "yes";
      made.textContent = question;
    });
    made.addEventListener("blur", () => {
      delete made.dataset.sure;
      made.textContent = text;
    });
    return made;
  };
  const copy = async () => {
    $("link-text").select();
    try {
      await navigator.clipboard.writeText($("link-text").value);
      $("copied").textContent = "Copied";
    } catch {
      $("copied").textContent = "Select the text and copy it: this browser does not let the page do so";
    }
  };
  const download = async () => {
    try {
      const reply = await fetch("api/lead/backup", { headers: { "X-Judgebench": "1" }, cache: "no-store" });
      if (!reply.ok) throw Object.assign(new Error(`error ${reply.status}`), { status: reply.status });
      const link = el("a");
      link.href = URL.createObjectURL(await reply.blob());
      link.download = "study.sqlite";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    } catch (error) {
      failed(error, "Nothing was saved: ", $("facts"));
    }
  };

  const showReasons = () => {
    const done = cases.filter((one) => one.adjudication);
    const why = [...new Set(done.map((one) => one.metric))].map((metric) => {
      const found = {};
      for (const one of done) if (one.metric === metric) found[one.adjudication.reason] = (found[one.adjudication.reason] || 0) + 1;
      const counts = Object.entries(found).map(([reason, n]) => `${number(n)} ${reason}`).join(", ");
      return `${title(metric)}: ${counts}, of ${counted(cases.filter((one) => one.metric === metric).length, "disagreement")}.`;
    });
    $("reasons").textContent = [`${counted(cases.length, "disagreement")}, ${number(done.length)} adjudicated. The most severe come first; names are hidden.`, ...why].join(" ");
  };
  // The texts of the item that a remark is about, and the way to its disagreement.
  const showItem = async (box, screen) => {
    const n = cases.findIndex((one) => one.screen === screen);
    const go = button("To its disagreement", "", () => {
      showCase(n);
      $("disagreements").scrollIntoView();
      $("case").focus({ preventScroll: true });
    });
    try {
      const { sections } = await ask(`api/lead/item/${screen}`);
      box.append(...sections.flatMap((section) => [born("h3", "", section.heading), textBox(section)]), ...(n < 0 ? [] : [go]));
    } catch (error) {
      failed(error);
    }
  };

  // --- disagreements -----------------------------------------------------------------------------
  const place = ({ screen, field }) => `${screen} ${field.key}`;
  const untouched = () => !$("case").querySelector(":checked") && !$("case").querySelector("textarea")?.value;
  const loadCases = async () => {
    const shown = cases[at] && place(cases[at]);
    const found = await ask("api/lead/disagreements");
    for (const one of found) one.adjudication = settled.get(place(one)) || one.adjudication;
    cases = found;
    const again = cases.findIndex((one) => place(one) === shown);
    if (again >= 0) at = again;
    else showCase(cases.findIndex((one) => !one.adjudication));
    tellCase();
  };
  const tellCase = () => {
    const open = cases.filter((one) => !one.adjudication).length;
    const done = cases[at]?.adjudication ? "adjudicated, " : "";
    if ($("where")) $("where").textContent = `${at + 1} of ${cases.length}, ${done}${open} to adjudicate`;
    $("case").classList.toggle("adjudicated", Boolean(done));
    showReasons();
  };
  const choice = (name, value, key, text, type, about) => {
    const box = el("label", "option");
    const input = el("input");
    Object.assign(input, { type, name, value });
    if (name === "label") input.addEventListener("change", () => pick(name, value));
    const hint = el("kbd", "", key);
    hint.setAttribute("aria-hidden", "true");
    hint.hidden = !key;
    const said = born("span", "", text);
    if (about) said.append(el("small", "", about));
    box.append(input, hint, said);
    return box;
  };
  const group = (heading, ...choices) => {
    const box = el("fieldset");
    box.append(born("legend", "", heading), ...choices);
    return box;
  };
  const button = (text, key, act, className) => {
    const made = el("button", className, `${text} `);
    made.type = "button";
    if (key) made.append(el("kbd", "", key));
    made.addEventListener("click", act);
    return made;
  };
  const showCase = (next) => {
    at = next;
    const one = cases[at];
    const head = el("header");
    if (!one) {
      const text = cases.length ? "Every disagreement is adjudicated." : "No disagreement yet.";
      $("case").replaceChildren(el("p", "", text));
      if (cases.length) $("case").append(button("Look through them again", "←", () => showCase(cases.length - 1)));
      return tellCase();
    }
    const { field, adjudication: past } = one;
    const where = el("span");
    where.id = "where";
    head.append(born("h3", "", field.title), where);
    const [texts, asked, pair] = [el("div", "texts"), el("div"), el("div", "pair")];
    texts.tabIndex = 0;
    texts.setAttribute("role", "region");
    texts.setAttribute("aria-label", "Texts");
    for (const section of one.sections)
      texts.append(born("h4", "", section.heading), textBox(section));
    const said = el("ul", "given");
    chosen = past?.label ?? null;
    said.append(...one.labels.map((label) => born("li", "", textOf(field, label))), ...one.remarks.map((remark) => born("li", "", `“${remark}”`)));
    const remark = el("textarea");
    remark.maxLength = 10000;
    remark.dir = "auto";
    remark.value = past?.remark || "";
    const beside = el("label", "", "Remark");
    beside.append(remark);
    const steps = el("div", "steps");
    const save = button("Save and go on", "Enter", settle, "strong");
    save.id = "settle";
    const unsaved = el("p", "warn");
    unsaved.id = "unsaved";
    unsaved.setAttribute("role", "alert");
    unsaved.hidden = true;
    $("case").onchange = () => (unsaved.hidden = true);
    steps.append(button("Back", "←", () => step(-1)), button("Next", "→", () => step(1)), save, unsaved);
    asked.append(
      born("p", "ask", field.question), el("b", "", "Annotators said"), said,
      group(field.together ? "Your labels" : "Your label", ...field.options.map(({ value, text }, i) => choice("label", value, i < 9 ? i + 1 : "", text, field.together ? "checkbox" : "radio"))),
      group("Why they differ", ...Object.entries(REASONS).map(([key, reason]) => choice("reason", reason, key.toUpperCase(), reason, "radio", ABOUT[reason]))),
      beside, steps,
    );
    pair.append(texts, asked);
    $("case").replaceChildren(head, pair);
    if (field.together) $("case").querySelector("fieldset legend").after(el("p", "note", ORDER));
    if (past) pick("reason", past.reason);
    showChosen();
    tellCase();
  };
  const inputs = (key) => [...$("case").querySelectorAll(`input[name=${key}]`)];
  const showChosen = () => {
    for (const input of inputs("label")) mark(input.closest(".option"), input, givenIn(cases[at].field, chosen));
  };
  const pick = (key, value) => {
    const input = inputs(key).find((one) => one.value === value);
    if (key === "label") chosen = pressed(cases[at].field, chosen, value);
    else if (input) input.checked = true;
    showChosen();
    $("unsaved").hidden = true;
    return input;
  };
  const step = (by) => cases[at + by] && showCase(at + by);
  const settle = async () => {
    const one = cases[at];
    const [label, reason] = [chosen, inputs("reason").find((input) => input.checked)?.value];
    if (label === null || !reason) {
      const lacking = [label === null && "a label", !reason && "why they differ"].filter(Boolean).join(", and ");
      $("unsaved").textContent = `Not saved: choose ${lacking}.`;
      return ($("unsaved").hidden = false);
    }
    const given = { label, reason, remark: $("case").querySelector("textarea").value };
    const event = { client_id: crypto.randomUUID(), screen: one.screen, hash: one.hash, field: one.field.key, ...given };
    try {
      $("settle").disabled = true;
      const { refused } = await ask("api/lead/adjudicate", event);
      const [why] = Object.values(refused);
      if (why) throw Object.assign(new Error(`it ${why}`), { status: 400 });
      warn("");
      one.adjudication = given;
      settled.set(place(one), given);
      const after = cases.findIndex((other, i) => i > at && !other.adjudication);
      showCase(after < 0 ? cases.findIndex((other) => !other.adjudication) : after);
      $("case").focus({ preventScroll: true });
      $("disagreements").scrollIntoView({ block: "nearest" });
      clearTimeout(soon);
      soon = setTimeout(refresh, SOON_MS);
    } catch (error) {
      if ($("settle")) $("settle").disabled = false;
      failed(error, "This was not saved: ", $("unsaved"));
    }
  };

  // --- the page ----------------------------------------------------------------------------------
  const warn = (text) => {
    $("warning").textContent = text;
    $("warning").hidden = !text;
  };
  const close = (text) => {
    clearInterval(timer);
    $("all").hidden = $("tools").hidden = true;
    $("as-of").textContent = text;
  };
  // An act fails beside its button (`place`); figures are read again by themselves.
  const failed = (error, before = "", place = null) => {
    if (error.status === 401 || error.status === 403)
      return close("You are signed out. Open a new link: judgebench annotate link STUDY lead");
    const why = error.status ? error.message.replace(/\.$/, "") : "the server cannot be reached";
    if (!place) return warn(`${before}${why}.${before ? "" : " It is tried again."}`);
    place.textContent = `${before}${why}.`;
    place.hidden = false;
  };
  const refresh = async () => {
    if (document.visibilityState === "hidden") return;
    try {
      figures = await ask("api/lead");
      $("study").textContent = figures.study;
      document.title = `${figures.study.slice(0, 60)} · labels so far`;
      for (const show of [showProgress, showAgreement, showUse, showAnchors, showRest]) show();
      showAccess(figures.access);
      if (!document.querySelector("#matrix [aria-expanded=true]")) await loadItems();
      if (untouched()) await loadCases();
      $("all").hidden = $("tools").hidden = false;
      $("as-of").textContent = `As of ${new Date(figures.at).toLocaleTimeString("en-GB")}, read again every 30 seconds`;
      warn("");
    } catch (error) {
      failed(error);
    }
  };
  const timer = setInterval(refresh, EVERY_MS);
  const start = async () => {
    const token = location.hash.slice(1);
    if (token.length > 40) {
      try {
        const { role } = await ask("api/enter", { token });
        if (role !== "lead") return location.replace("./");
      } catch (error) {
        if (error.status !== 401) return failed(error); // a link that was used: this browser may be in
      }
      history.replaceState(null, "", location.pathname);
    }
    await refresh();
  };
  document.querySelector("a[href='#disagreements']").addEventListener("click", () => setTimeout(() => $("case").focus()));
  $("leave").addEventListener("click", () => ask("api/lead/leave", {}).then(() => close("You are signed out."), failed));
  $("copy").addEventListener("click", copy);
  $("backup").addEventListener("click", download);
  $("add").addEventListener("submit", (event) => {
    event.preventDefault();
    person("add", $("add-name").value.trim());
  });
  for (const name of ["input", "submit"])
    $("filter").addEventListener(name, (event) => {
      event.preventDefault();
      most = PAGE;
      showItems();
    });
  $("case").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("visibilitychange", refresh);
  addEventListener("hashchange", () => location.hash.length > 40 && location.reload());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !cases[at]) return;
    if (event.target.closest?.("textarea, button, a, summary")) return;
    const { top, bottom } = $("case").getBoundingClientRect();
    const seen = event.target === document.body && top < innerHeight / 2 && bottom > 0;
    if (!seen && !event.target.closest?.("#case")) return;
    const option = cases[at].field.options[Number(event.key) - 1];
    const reason = REASONS[event.key.toLowerCase()];
    const act = { Enter: settle, ArrowLeft: () => step(-1), ArrowRight: () => step(1) }[event.key];
    if (!option && !reason && !act) return;
    event.preventDefault();
    if (act) act();
    else pick(option ? "label" : "reason", option ? option.value : reason).focus();
  });
  start();
})();
