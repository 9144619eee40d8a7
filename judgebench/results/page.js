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

  const tables = [...document.querySelectorAll(".table table")];
  tables.filter((table) => table.tBodies[0].rows.length > 1).forEach(orderable);
  const choose = (name, values, any) => {
    const [label, select] = [el("label", "", name), el("select")];
    for (const [value, text] of [...(any ? [["", any]] : []), ...values]) {
      const option = el("option", "", text);
      option.value = value;
      select.append(option);
    }
    label.append(select);
    return [label, select];
  };

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
        piece.append(el("h4", "", part), text);
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
    wide.tabIndex = 0;
    wide.setAttribute("role", "group");
    wide.setAttribute("aria-label", "Labels");
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
    texts.append(...card.texts.map((one) => passage(one, "h3")));
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
      const [label, select] = choose(name, values.map((one) => [one, one]), "any");
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

  // Every item: a window of rows, each of which opens to the texts and all labels. A label is a sign
  // of a text that has one for each item (judgebench/results/items.py).
  const ROWS = 12;
  const MOST_COLUMNS = 3; // judges with a column of their own
  const MOST_SHOWN = 160; // characters of an excerpt
  const whole = (signs) => signs.replace(/\((\d+)\)/g, (_, n) => " ".repeat(+n));
  const isLabel = (sign) => sign >= "0";
  const itemBrowser = (box) => {
    const data = JSON.parse(box.querySelector("script").textContent);
    const metrics = data.metrics.map((one) => ({
      ...one,
      reference: whole(one.reference),
      annotators: new Map(one.annotators.map(([who, signs]) => [who, whole(signs)])),
      judges: new Map(one.judges.map(([who, signs]) => [who, whole(signs)])),
    }));
    const place = (sign) => sign.charCodeAt(0) - 48;
    const said = (metric, sign) => (isLabel(sign) ? metric.labels[place(sign)] : data.noLabel[sign] || "–");
    const names = (kind) => [...new Set(metrics.flatMap((one) => [...one[kind].keys()]))];
    const [judges, people] = [names("judges"), names("annotators")];
    const labels = [...new Set(metrics.flatMap((one) => one.labels))];
    const same = (list) => list.map((one) => [one, one]);

    const [form, rows, found] = [".choose", ".rows", "output"].map((one) => box.querySelector(one));
    const control = (name, values, any) => {
      const [label, select] = choose(name, values, any);
      label.hidden = values.length < 2;
      form.append(label);
      return select;
    };
    const ways = [["judges", "Judges differ from annotators"], ["annotators", "Annotators differ"], ["all", "All"]];
    const chosen = {
      way: control("Show", ways),
      metric: control("Metric", metrics.map((one, m) => [m, one.title]), "any"),
      judge: control("Judge", same(judges), "any"),
      who: control("Annotator", same(people), "all together"),
      human: control("Annotators say", same(labels), "anything"),
      judged: control("Judge says", same(labels), "anything"),
    };
    const [textLabel, search] = [el("label", "", "Text"), el("input")];
    search.type = "search";
    textLabel.append(search);
    form.append(textLabel);

    // What holds for the metrics, judges and annotator that are chosen.
    const scope = () => ({
      metrics: chosen.metric.value ? [metrics[chosen.metric.value]] : metrics,
      judges: chosen.judge.value ? [chosen.judge.value] : judges,
      who: chosen.who.value,
    });
    const given = (metric, i) => [...metric.annotators.values()].map((signs) => signs[i]).filter(isLabel);
    const compared = (metric, who) => (who ? metric.annotators.get(who) || "" : metric.reference);
    // How far a judge is from the reference label, or from one annotator; without a reference label,
    // from the nearest annotator. Below 0 where it is the milder one.
    const step = (metric, label, other) => {
      if (!isLabel(label)) return 1;
      const [a, b] = [place(label), place(other)];
      const { severities } = metric;
      return a < severities.length && b < severities.length ? severities[a] - severities[b] : Number(a !== b);
    };
    const apart = (metric, judge, i, who) => {
      const label = (metric.judges.get(judge) || "")[i];
      if (label === undefined || "-./".includes(label)) return 0;
      const other = compared(metric, who)[i];
      if (other !== undefined && isLabel(other)) return step(metric, label, other);
      const steps = who ? [] : given(metric, i).map((one) => step(metric, label, one));
      return steps.length ? steps.reduce((a, b) => (Math.abs(b) < Math.abs(a) ? b : a)) : 0;
    };
    const differ = (metric, i, who) => {
      const labels = new Set(given(metric, i));
      const own = who && compared(metric, who)[i];
      return labels.size > 1 && (!who || (isLabel(own || " ") && own !== metric.reference[i]));
    };
    const says = (metric, i, { who, judges: among }) => {
      const { human, judged } = Object.fromEntries(
        ["human", "judged"].map((one) => [one, metric.labels.indexOf(chosen[one].value)]),
      );
      const is = (signs, label) => signs !== undefined && isLabel(signs) && place(signs) === label;
      return (
        (!chosen.human.value || is(compared(metric, who)[i], human)) &&
        (!chosen.judged.value || among.some((one) => is((metric.judges.get(one) || "")[i], judged))) &&
        (!who || isLabel(compared(metric, who)[i] || " "))
      );
    };

    const lower = data.strings.map((text) => text.toLowerCase());
    const places = (texts) => texts.flatMap(([h, x]) => [h, ...(Array.isArray(x) ? x.map(([, t]) => t) : [x])]);
    const matching = () => {
      const wanted = search.value.trim().toLowerCase();
      if (!wanted) return () => true;
      const hits = new Set(lower.flatMap((text, t) => (text.includes(wanted) ? [t] : [])));
      const inside = (i) => [data.systems[i], ...places(data.texts[i]), ...places(data.folded[i] || [])];
      return (i) => data.ids[i].toLowerCase().includes(wanted) || inside(i).some((t) => hits.has(t));
    };

    let [list, start] = [[], 0];
    const filter = () => {
      const [within, hit] = [scope(), matching()];
      const ways = { judges: [], annotators: [], all: [] };
      for (let i = 0; i < data.ids.length; i += 1) {
        const of = within.metrics.filter((metric) => says(metric, i, within));
        if (!of.length || !hit(i)) continue;
        let far = 0;
        let mild = 0;
        for (const metric of of) {
          for (const judge of within.judges) {
            const distance = apart(metric, judge, i, within.who);
            far += Math.abs(distance);
            mild = Math.min(mild, distance);
          }
        }
        ways.all.push(i);
        const split = of.filter((metric) => differ(metric, i, within.who)).length;
        if (far) ways.judges.push([i, far, mild, split]);
        if (split) ways.annotators.push(i);
      }
      // The farthest first, of those the too mild, of those what annotators agree on.
      ways.judges.sort((a, b) => b[1] - a[1] || a[2] - b[2] || a[3] - b[3] || a[0] - b[0]);
      ways.judges = ways.judges.map(([i]) => i);
      for (const option of chosen.way.options) {
        const n = ways[option.value].length.toLocaleString("en");
        option.textContent = `${option.textContent.replace(/ \([\d,]+\)$/, "")} (${n})`;
      }
      [list, start] = [ways[chosen.way.value], 0];
    };

    const counted = (metric, i) => {
      const count = new Map();
      for (const sign of given(metric, i)) count.set(sign, (count.get(sign) || 0) + 1);
      return [...count].map(([sign, n]) => said(metric, sign) + (n > 1 ? ` ×${n}` : "")).join(", ");
    };
    const bit = (caption, text, look) => {
      const made = el("span", look ? `bit ${look}` : "bit");
      made.append(el("small", "", `${caption} `), el("span", "", text));
      return made;
    };
    const textUnder = (i, headings) => {
      const [, text] = data.texts[i].find(([heading]) => headings.includes(data.strings[heading])) || [];
      const parts = Array.isArray(text) ? text.filter(([mark]) => !mark).map(([, t]) => t) : [text];
      return parts.map((t) => (data.strings[t] || "").replace("(no text)", "")).join(" ").slice(0, MOST_SHOWN);
    };
    const excerpt = (i) => textUnder(i, ["Answer", "Responses", "Conversation"]) || textUnder(i, ["Question"]);
    const about = (i, metrics) => metrics.filter((metric) => metric.reference[i] !== "/");
    const line = (i, { metrics: all, judges: among, who }) => {
      const of = about(i, all);
      const one = of.length === 1 && of[0];
      const split = of.filter((metric) => new Set(given(metric, i)).size > 1).length;
      const human = one ? counted(one, i) : split ? `differ on ${split} of ${of.length}` : of.some((metric) => given(metric, i).length > 1) ? "agree" : "";
      const people = (metric) => [compared(metric, who)[i] || " ", ...(who ? [] : given(metric, i))];
      const told = among.slice(0, MOST_COLUMNS).map((judge) => {
        const off = of.filter((metric) => apart(metric, judge, i, who));
        const sign = one && (one.judges.get(judge) || "")[i];
        const beside = of.some((metric) => isLabel((metric.judges.get(judge) || "")[i] || " ") && people(metric).some(isLabel));
        const more = off.length ? `differs on ${off.length} of ${of.length}` : beside ? "agrees" : "–";
        const text = one ? (sign ? said(one, sign) : "–") : more;
        return bit(judge, text, off.length ? "off" : "");
      });
      return [el("span", "id", data.ids[i]), bit("Annotators", human), ...told, el("span", "excerpt", excerpt(i))];
    };
    const text = (x) => (Array.isArray(x) ? x.map(([mark, t]) => [mark, data.strings[t]]) : [["", data.strings[x]]]);
    const texts = (list) => list.map(([heading, x]) => [data.strings[heading], text(x)]);
    const card = (i) => {
      const of = about(i, metrics);
      const [asked, told] = ["annotators", "judges"].map((kind) =>
        names(kind).filter((who) => of.some((metric) => !" /".includes((metric[kind].get(who) || " ")[i]))),
      );
      const cells = (metric) => [
        [metric.title],
        [said(metric, metric.reference[i]), "", "", true],
        ...asked.map((who) => [said(metric, (metric.annotators.get(who) || " ")[i])]),
        ...told.map((judge) => {
          const distance = apart(metric, judge, i, "");
          const sign = !distance ? "" : !metric.severities.length ? "≠ " : distance < 0 ? "▼ " : "▲ ";
          return [sign + said(metric, (metric.judges.get(judge) || " ")[i]), distance ? "bad" : ""];
        }),
      ];
      const grid = { columns: ["Metric", "Reference label", ...asked, ...told], stubs: 1, rows: of.map(cells) };
      const system = data.strings[data.systems[i]];
      return article({
        title: data.ids[i],
        about: system ? [`answer by ${system}`] : [],
        texts: texts(data.texts[i]),
        folded: texts(data.folded[i] || []),
        grid: of.length ? grid : null,
      });
    };
    const row = (i, within) => {
      const [made, summary] = [el("details", "row"), el("summary")];
      summary.append(...line(i, within));
      made.append(summary);
      made.dataset.item = data.ids[i];
      made.addEventListener("toggle", () => {
        if (!made.open || made.children.length > 1) return;
        const link = el("a", "", "Link to this item");
        link.href = `#item-${encodeURIComponent(data.ids[i])}`;
        made.append(card(i), link);
      });
      return made;
    };
    const [back, on] = [".back", ".on"].map((one) => box.querySelector(one));
    const show = () => {
      const within = scope();
      const shown = list.slice(start, start + ROWS);
      rows.replaceChildren(...shown.map((i) => row(i, within)));
      rows.dataset.columns = Math.min(MOST_COLUMNS, within.judges.length);
      const from = shown.length ? start + 1 : 0;
      found.textContent = `${from.toLocaleString("en")} to ${(start + shown.length).toLocaleString("en")} of ${list.length.toLocaleString("en")}`;
      back.disabled = !start;
      on.disabled = start + ROWS >= list.length;
    };
    const turn = (by) => {
      start = Math.max(0, Math.min(start + by, list.length - 1));
      show();
    };
    back.addEventListener("click", () => turn(-ROWS));
    on.addEventListener("click", () => turn(ROWS));
    const again = () => {
      filter();
      show();
    };
    form.addEventListener("input", again);
    form.addEventListener("submit", (event) => event.preventDefault());

    // A link to an item shows the window that it is in, and opens it; one to the misses of a judge
    // shows those, the farthest off first.
    const decoded = (text) => {
      try {
        return decodeURIComponent(text);
      } catch {
        return text;
      }
    };
    const reset = (values) => {
      for (const [name, select] of Object.entries(chosen)) select.value = values[name] ?? "";
      search.value = "";
      again();
    };
    const follow = () => {
      const [, kind, ...rest] = /^#(misses|item)-([^=]*)=?(.*)$/.exec(location.hash) || [];
      const wanted = rest.map(decoded);
      if (kind === "misses") {
        const metric = metrics.findIndex((one) => one.title === wanted[0]);
        reset({ way: "judges", metric: metrics.length > 1 ? metric : "", judge: judges.length > 1 ? wanted[1] : "" });
        $("items").scrollIntoView();
        rows.firstChild?.firstChild.focus({ preventScroll: true });
      }
      const i = kind === "item" ? data.ids.indexOf(wanted[0]) : -1;
      if (i < 0) return;
      if (!list.includes(i)) reset({ way: "all" });
      start = ROWS * Math.floor(list.indexOf(i) / ROWS);
      show();
      const opened = [...rows.children].find((one) => one.dataset.item === data.ids[i]);
      opened.open = true;
      opened.scrollIntoView();
      opened.firstChild.focus({ preventScroll: true });
    };
    addEventListener("hashchange", follow);
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (link && link.getAttribute("href") === location.hash) follow();
    });

    box.hidden = false;
    filter();
    if (!list.length) chosen.way.value = "all";
    again();
    follow();
  };
  for (const box of document.querySelectorAll(".items")) itemBrowser(box);
})();
