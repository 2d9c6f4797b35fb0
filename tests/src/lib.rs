#![doc = "Tests that need the whole of dfc."]
