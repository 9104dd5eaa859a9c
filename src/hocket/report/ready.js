startWires();
startCharts();
document.body.dataset.ready = "yes";
