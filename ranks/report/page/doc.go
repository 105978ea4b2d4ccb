// Package page writes siafu's HTML pages. A page is one file that needs no network. It has charts,
// sortable tables and a legend that hides lines. All texts are escaped. The page's
// Content-Security-Policy permits only its own script, and no loading of other resources.
package page
