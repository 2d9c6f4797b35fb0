#!/usr/bin/env bash
# PostgreSQL to PostgreSQL: the rate of dfc with a checkpoint every 10 s against `psql` COPY piped to COPY, on the same tables in the same
# run; then the same copy killed at random, whose target must be equal. Starts a server of its own.
# usage: bench/postgres_copy.sh [ROWS] [KILLS]      DFC=path/to/dfc (a release build)
set -euo pipefail
cd "$(dirname "$0")/.."

rows=${1:-5000000} kills=${2:-10}
dfc=${DFC:-$(pwd)/target/release/dfc}
work=$(mktemp -d /tmp/dfc-bench.XXXXXX)
chmod 755 "$work"
trap 'tests/servers/postgres stop "$work/server" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
PG_URL=$(tests/servers/postgres start "$work/server")
export PG_URL PGSSLMODE=disable   # both sides in plain text
sql() { psql "$PG_URL" -X -q -t -A -v ON_ERROR_STOP=1 -c "$1"; }
# Milliseconds that a command takes.
took() { local start; start=$(date +%s%N); "$@" >&2; echo $((($(date +%s%N) - start) / 1000000)); }

sql "CREATE TABLE a (id bigint PRIMARY KEY, customer integer NOT NULL, status text NOT NULL, price numeric(12, 2) NOT NULL, at timestamptz NOT NULL);
     INSERT INTO a SELECT i, i % 100003, 'status ' || i % 7, (i % 100000) / 100.0, '2026-01-01'::timestamptz + i * interval '1 second'
       FROM generate_series(1, $rows) i;
     CREATE TABLE b (LIKE a INCLUDING ALL)"
sql "VACUUM ANALYZE a"
cat >"$work/p.df" <<'DF'
job copy { parallelism: 2, checkpoint { interval: 10s } }
record R { id: int64, customer: int32, status: string, price: decimal(12, 2), at: timestamp }
source s = postgres(secret("PG_URL"), table: "a", schema: R)
sink s |> postgres(secret("PG_URL"), table: "b")
DF
clear() { sql "TRUNCATE b; DROP TABLE IF EXISTS _dfc_ledger"; sql CHECKPOINT; rm -rf "$work/.dfc"; }
differ() { sql "SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) q"; }
piped() { psql "$PG_URL" -X -q -c "COPY a TO STDOUT" | psql "$PG_URL" -X -q -c "COPY b FROM STDIN"; }

for turn in 1 2 3; do
    clear; psql_time=$(took piped)
    clear; dfc_time=$(took "$dfc" run "$work/p.df")
    echo "turn $turn: psql $psql_time ms, dfc $dfc_time ms, ratio $(awk "BEGIN { printf \"%.2f\", $psql_time / $dfc_time }")"
done
echo "rows that differ: $(differ)"

# Killed after up to two seconds each time, with a checkpoint every second, so that it gets on and isn't done before the last kill.
clear
sed -i 's/interval: 10s/interval: 1s/' "$work/p.df"
for killed in $(seq "$kills"); do
    "$dfc" run "$work/p.df" >/dev/null 2>"$work/log" &
    sleep "$((RANDOM % 2)).$((RANDOM % 10))"
    if ! kill -9 $! 2>/dev/null; then
        echo "done before kill $killed of $kills: give more rows" >&2
        exit 1
    fi
    wait $! 2>/dev/null || true
done
"$dfc" run "$work/p.df" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
grep -m 1 "going on from checkpoint" "$work/log" || true
echo "killed $kills times; rows that differ: $(differ)"
