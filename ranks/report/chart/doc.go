// Package chart draws the results of runs: lines over epochs or seconds with bands for their
// deviation, bars with whiskers, and the timeline of a run's tasks. Each chart is an SVG element
// of a Page. Lines and bars can also be written as SVG and PNG files.
//
// A group of runs has the same colour and dashes in every chart. The colours are those
// of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can distinguish.
// In a page the style sheet sets the colours, and a dark page has lighter ones. An element of
// group 3 has two classes: scripts select it by g3, and c3 sets its colour.
//
// A Page is one HTML file that needs no network. It has charts, sortable tables and a legend that
// hides lines. All texts are escaped. The page's Content-Security-Policy permits only its own
// script, and no loading of other resources.
package chart
