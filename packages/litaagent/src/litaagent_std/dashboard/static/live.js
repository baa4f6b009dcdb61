// Loads a page again in place: when a filter changes and, while what it shows still grows, every few seconds.
// Only the parts whose HTML has changed are replaced, so scroll position, focus and zoomed charts stay.
"use strict";

(() => {
  const PERIOD = 5000; // milliseconds between two requests of a live page
  const PAUSES = [100, 400, 1600]; // milliseconds before the second, third and fourth attempt of a lost request
  const main = document.getElementById("page");
  const sources = new WeakMap(); // element -> its HTML as the server sent it, before charts were drawn into it
  let latest = 0; // number of the latest request; responses to older ones are dropped
  let pending = 0; // requests without a response yet

  const isContainer = (element) => element.matches("main, section, .grid");

  function remember(element) {
    sources.set(element, element.outerHTML);
    if (isContainer(element)) for (const child of element.children) remember(child);
  }

  // Ask again if no response came: browsers drop connections, servers restart. A response is never asked for twice.
  async function fetchText(address) {
    for (const pause of [...PAUSES, null]) {
      try {
        return await (await fetch(address, { headers: { Accept: "text/html" } })).text();
      } catch (error) {
        if (!(error instanceof TypeError) || pause === null) throw error;
        await new Promise((resume) => setTimeout(resume, pause));
      }
    }
  }

  function patch(old, fresh) {
    const before = [...old.children];
    const after = [...fresh.children];
    after.forEach((element, index) => {
      const present = before[index];
      if (present === undefined) old.append(element);
      else if (sources.get(present) === sources.get(element)) return;
      else if (isContainer(present) && isContainer(element) && present.className === element.className) {
        patch(present, element);
        sources.set(present, sources.get(element));
      } else if (!redraw(present, element)) present.replaceWith(element);
    });
    for (const element of before.slice(after.length)) element.remove();
  }

  // A figure with the same chart keeps its zoom; only its data change.
  function redraw(present, element) {
    const [chart, next] = [present, element].map((figure) => figure.querySelector(":scope > .chart"));
    if (!chart || !next || chart.dataset.name !== next.dataset.name || !chart.classList.contains("js-plotly-plot")) {
      return false;
    }
    const note = (figure) => figure.querySelector("figcaption")?.textContent;
    const json = element.querySelector("script.figure");
    const { figure, config } = JSON.parse(json.textContent);
    if (figure.frames || note(present) !== note(element)) return false;
    Plotly.react(chart, { ...figure, config });
    chart.style.height = next.style.height;
    present.querySelector("h3").textContent = element.querySelector("h3").textContent;
    present.querySelector("script.figure").textContent = json.textContent;
    sources.set(present, sources.get(element));
    return true;
  }

  async function update(address) {
    const request = ++latest;
    pending += 1;
    const text = await fetchText(address).finally(() => (pending -= 1));
    if (request !== latest) return;
    const next = new DOMParser().parseFromString(text, "text/html");
    const fresh = document.importNode(next.getElementById("page"), true);
    remember(fresh);
    const top = window.scrollY;
    const focused = document.activeElement?.id;
    patch(main, fresh);
    if (focused && document.activeElement.id !== focused) {
      document.getElementById(focused)?.focus({ preventScroll: true });
    }
    document.title = next.title;
    main.toggleAttribute("data-live", fresh.hasAttribute("data-live"));
    drawCharts(main);
    window.scrollTo({ top, behavior: "instant" });
  }

  // The address after a choice: several values of one filter are joined with commas, empty ones are left out.
  function addressOf(form) {
    const query = new URLSearchParams(location.search);
    const chosen = new FormData(form);
    for (const name of form.dataset.names.split(" ")) {
      const value = chosen.getAll(name).filter(Boolean).join(",");
      if (value) query.set(name, value);
      else query.delete(name);
    }
    return `${location.pathname}?${query}`;
  }

  main.addEventListener("change", (event) => {
    const form = event.target.closest("form.filters");
    if (!form) return;
    const address = addressOf(form);
    history.pushState(null, "", address);
    update(address).catch(() => location.assign(address));
  });
  window.addEventListener("popstate", () => update(location.href).catch(() => location.reload()));
  setInterval(() => {
    const isLive = main.hasAttribute("data-live") && !document.hidden;
    if (isLive && pending === 0) update(location.href).catch(() => {}); // the next attempt follows
  }, PERIOD);

  remember(main); // this script runs before charts.js draws
})();
