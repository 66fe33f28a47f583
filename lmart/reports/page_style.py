"""The style sheet of the page: one column for telephones, two of charts where there is room; light and dark."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c1e21; --faint: #5c636a; --paper: #ffffff; --line: #c9ced3; --grid: #c9ced3; --raised: #f4f6f8;
  --s1: #0b62a8; --s2: #b34700; --s3: #1b7a4b; --s4: #8a3d8f; --s5: #7a5c00; --s6: #a32638;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ea; --faint: #a4abb2; --paper: #15181b; --line: #434a51; --grid: #434a51; --raised: #1f2327;
    --s1: #63b3f4; --s2: #ff9f5a; --s3: #62cf96; --s4: #d99be0; --s5: #dcc04f; --s6: #ff8d9b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .4rem 0; max-width: 44rem; }
.faint, caption, footer { color: var(--faint); }
footer { margin-top: 2.5rem; font-size: .875rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--faint); }
dd { margin: 0; min-width: 0; }
.scroll { overflow-x: auto; margin: .5rem 0; }
.scroll:focus-visible { outline: 2px solid var(--s1); outline-offset: 2px; }
.scroll + .scroll { margin-top: 1.25rem; }
table { border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: .25rem; font-size: .875rem; }
th, td { padding: .2rem .65rem .2rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; color: var(--faint); font-weight: 600; }
th:first-child, td:first-child, .text { text-align: left; }
#comparisons th:nth-child(-n+3) { text-align: left; }
tbody th { font-weight: 400; }
td.best { font-weight: 700; }
td.bar { min-width: 5rem; width: 40%; }
td.bar span { display: block; height: .7rem; background: var(--s1); border-radius: 2px; }
details { margin: .25rem 0 .75rem; }
summary { cursor: pointer; color: var(--faint); font-size: .875rem; padding: .2rem 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 2rem; }
figure { margin: .5rem 0; min-width: 0; max-width: 36rem; }
figcaption { font-weight: 600; margin-bottom: .25rem; }
svg { display: block; width: 100%; height: auto; color: var(--ink); stroke-linejoin: round; }
svg text { font-family: inherit; }
@media print { details { display: block; } body { max-width: none; } }
"""
