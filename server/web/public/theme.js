// Applies the user's colours and density before the first paint.
try {
  const { dataset } = document.documentElement;
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") {
    dataset.theme = theme;
    // The frame that a phone draws around the page.
    for (const color of document.querySelectorAll("meta[name=theme-color]")) {
      color.content = theme === "dark" ? "#0b0b0d" : "#f6f6f4";
    }
  }
  if (localStorage.getItem("density") === "compact") dataset.density = "compact";
} catch {
  // No site data: the defaults apply.
}
