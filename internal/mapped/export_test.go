package mapped

// Touch is Fetch on systems that cannot populate pages.
var Touch = touch
