// Draws each figure of a page from the value beside it.

// Where every bar has a colour and a hatch of its own, Plotly warns of a default that it never uses.
Plotly.setPlotConfig({ logging: 0 });

for (const plot of document.querySelectorAll(".plot")) {
  const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
  Plotly.newPlot(plot, data, layout, { responsive: true, displaylogo: false });
}
