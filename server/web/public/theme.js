// Runs before the first paint: applies the theme that the user has chosen.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The browser keeps no site data: the system's theme applies.
}
