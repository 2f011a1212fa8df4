//! Finds plugin files, reads and checks them, opens them and hands out instances.
