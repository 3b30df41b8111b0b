// Runs before the first paint: applies the theme that the user has chosen.
{
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
