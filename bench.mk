# What Uptake costs, beside what it costs at least. Included by the Makefile.
.PHONY: bench soak profile bench-programs
BENCH = cargo run --quiet --profile simulation --example bench

bench: bench-programs ## what a change costs, beside what it costs at least (NAMESPACES=50 PER_NAMESPACE=40 FANOUT=300)
	UPTAKE="$(E2E)/release/uptake" $(BENCH)

soak: bench-programs ## an hour of changes, after which no more memory is used than before (SOAK=minutes)
	SOAK="$(or $(SOAK),60)" UPTAKE="$(E2E)/release/uptake" $(BENCH)

profile: need-rust need-go ## where the time goes during the benchmark, with perf, in target/bench
	@$(MAKE) --no-print-directory cluster
	cargo build --profile profiling --bin uptake
	@mkdir -p target/bench
	PROFILE="target/bench/profile.data" UPTAKE="$(E2E)/profiling/uptake" $(BENCH)
	perf report --stdio --no-children --percent-limit 0.7 --input target/bench/profile.data | tee target/bench/profile.txt

bench-programs: need-rust need-go
	@$(MAKE) --no-print-directory cluster
	cargo build --release --bin uptake
