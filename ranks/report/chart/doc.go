// Package chart draws what runs have left: lines over epochs or seconds, with bands of
// their deviation; bars with whiskers; and the timeline of a run's tasks. Each is an SVG
// element that stands in a page or in a file of its own.
//
// A group of runs has the same colour and dashes in every chart. The colours are those
// of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers tell apart.
// In a page they come from its style, so that a dark one has lighter ones: an element of
// group 3 has the classes g3, by which a script finds it, and c3, its colour.
package chart
