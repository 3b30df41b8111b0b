// Applies the user's colours and density before the first paint.
try {
  const { dataset } = document.documentElement;
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") dataset.theme = theme;
  if (localStorage.getItem("density") === "compact") dataset.density = "compact";
} catch {
  // No site data: the defaults apply.
}
