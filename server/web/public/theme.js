// Runs before the first paint: applies the colours and the density that the user has chosen.
try {
  const { dataset } = document.documentElement;
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") dataset.theme = theme;
  if (localStorage.getItem("density") === "compact") dataset.density = "compact";
} catch {
  // The browser keeps no site data: the system's theme applies.
}
