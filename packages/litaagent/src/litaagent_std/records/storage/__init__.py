"""How records are kept: one world at a time, in files that are whole or not there.

`store.RecordStore` takes the worlds as they end, each as a `segment`, and packs them into shards; `manifest` says which
shards are complete and what is in them; `remote` publishes and fetches a folder of records.
"""
