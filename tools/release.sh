#!/usr/bin/env bash
# Makes a release of all modules in a scratch directory and proves that it can be used;
# with --tag it then commits and tags it. docs/releasing.md says why it is done so.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?"which version, such as v0.1.0?"}
root=github.com/tarnproject/tarn
modules=(. etcd jetstream ctrlcache sqlite postgres relay metrics cmd) # each requires only those before it
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "$version is no version: it should look like v0.1.0" >&2
  exit 1
fi

scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
tree=$scratch/tree proxy=$scratch/proxy
git clone -q --no-hardlinks . "$tree"
rm "$tree/go.work" "$tree/go.work.sum" 2>/dev/null || true
(cd tools/release && GOWORK=off go build -o "$scratch/pack" .)

path() { if [[ $1 == . ]]; then echo $root; else echo $root/$1; fi; }

# What is ours comes from the files, the rest from where it always does.
GOPROXY="file://$proxy,$(go env GOPROXY)"
export GOPROXY GOWORK=off GOFLAGS=-mod=mod GONOSUMDB=$root

# The go command keeps what it has got from a proxy. What an earlier try of the same
# version left there must not be found, nor what this one leaves.
forget() {
  local cache
  cache=$(go env GOMODCACHE)
  for module in "${modules[@]}"; do
    local name
    name=$(path "$module")
    if [[ -d $cache/$name@$version ]]; then chmod -R u+w "$cache/$name@$version"; fi
    rm -rf "$cache/$name@$version" "$cache/cache/download/$name/@v/$version".* "$cache/cache/download/$name/@v/list"
  done
}
trap 'forget; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
forget

for module in "${modules[@]}"; do
  (
    cd "$tree/$module"
    for sibling in "${modules[@]}"; do
      go mod edit -dropreplace "$(path "$sibling")"
      if grep -q "^	$(path "$sibling") v\|^require $(path "$sibling") v" go.mod; then
        go mod edit -require "$(path "$sibling")@$version"
      fi
    done
    go mod tidy
  )
  "$scratch/pack" "$(path "$module")" "$version" "$tree/$module" "$proxy"
  echo "packed $(path "$module")@$version"
done

consumer() { # name, packages: a program outside of the repository
  mkdir -p "$scratch/$1"
  (
    cd "$scratch/$1"
    go mod init "example.org/$1"
    { echo "package main"; for p in "${@:2}"; do echo "import _ \"$root/$p\""; done; echo "func main() {}"; } >main.go
    for module in "${modules[@]}"; do
      for p in "${@:2}"; do
        if [[ $module != . && $p == $module* ]]; then go mod edit -require "$root/$module@$version"; fi
      done
    done
    go mod edit -require "$root@$version"
    go mod tidy
    go build -o /dev/null .
  )
  echo "built a program that imports ${*:2}"
}
consumer operator cache kube informers
if (cd "$scratch/operator" && go mod graph) | grep -E 'go-sqlite3|spf13/cobra|controller-runtime|chromedp|prometheus/client_golang|jackc/pgx'; then
  echo "a program that imports cache and kube has these in its module graph" >&2
  exit 1
fi
consumer manager ctrlcache
consumer keeper sqlite/ondisk metrics
consumer feeder postgres
GOBIN=$scratch/bin go install "$root/cmd/tarn@$version"
"$scratch/bin/tarn" version

if [[ ${2:-} == --tag ]]; then
  git -C "$tree" add -A
  git -C "$tree" commit -qm "Release $version"
  git fetch -q "$tree" HEAD
  for module in "${modules[@]}"; do
    git tag "$([[ $module == . ]] || echo "$module/")$version" FETCH_HEAD
  done
  git tag --list "*$version"
fi
