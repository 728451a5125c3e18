// Draws a figure with the one copy of plotly.js that the bundle widget brought to this page.

async function plotly() {
  for (let i = 0; !globalThis.__pipemare_plotly && i < 600; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  if (!globalThis.__pipemare_plotly) {
    throw new Error("the plotting code did not arrive: run the notebook's first cell again");
  }
  return globalThis.__pipemare_plotly;
}

// Figures draw one a frame, however many wait, so that the page answers in between.
function frame() {
  const last = globalThis.__pipemare_frame ?? Promise.resolve();
  globalThis.__pipemare_frame = last.then(() => new Promise(requestAnimationFrame));
  return globalThis.__pipemare_frame;
}

async function render({ model, el }) {
  const state = await model.widget_manager.get_model(model.get("state").replace("IPY_MODEL_", ""));
  const plot = document.createElement("div");
  plot.setAttribute("role", "figure");
  el.classList.add("pipemare-figure");
  el.append(plot);
  let Plotly, due = false, gone = false;

  async function draw() {
    due = false;
    if (gone || !Plotly) return;
    const { data, layout } = JSON.parse(state.get("spec"));
    const first = !plot.data;
    await Plotly.react(plot, data, layout, { responsive: true, displaylogo: false });
    if (first) plot.on("plotly_click", ({ points: [{ id }] }) => id && model.send({ click: id }));
  }
  // However fast figures arrive, draw at most once a frame, and only the newest.
  function later() {
    if (!due) {
      due = true;
      frame().then(draw);
    }
  }
  // Keys that the kernel asked for go there, past the notebook's own shortcuts, from a figure that
  // has the focus.
  const keys = () => state.get("takes").split(" ").filter(Boolean);
  function pressed(event) {
    if (!keys().includes(event.key) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    model.send({ key: event.key });
  }
  if (keys().length) {
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-keyshortcuts", state.get("takes"));
    plot.dataset.lmSuppressShortcuts = "true";
    plot.addEventListener("keydown", pressed);
    plot.addEventListener("click", () => plot.focus({ preventScroll: true }));
  }
  const label = () => plot.setAttribute("aria-label", state.get("alt"));
  state.on("change:spec", later);
  state.on("change:alt", label);
  label();
  const resized = new ResizeObserver(() => Plotly && plot.data && Plotly.Plots.resize(plot));
  resized.observe(el);
  plotly().then((found) => { Plotly = found; later(); });

  return () => {
    gone = true;
    resized.disconnect();
    state.off("change:spec", later);
    state.off("change:alt", label);
    if (Plotly) Plotly.purge(plot);
  };
}

export default { render };
