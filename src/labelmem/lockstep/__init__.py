"""Steps of many streams on a GPU, recorded once and repeated."""
