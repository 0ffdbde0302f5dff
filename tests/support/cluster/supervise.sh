#!/usr/bin/env bash
# supervise.sh FOLDER: lives as long as the cluster's owner and ends everything after it.
#
# The owner holds the other end of this script's standard input and writes nothing to it. It closes when the
# owner drops the cluster, panics, is interrupted or is killed -9: then the whole process group, which this
# script leads and every component was started in, is killed, and the folder is removed. If it holds a file
# `keep`, the logs stay and only the bulky rest goes. What the operators of a noted run asked of the API server is kept.
folder=$1
kept=$(dirname "$(dirname "$folder")")/audit/$(basename "$folder")
cat >/dev/null
# A job of its own group, so that it survives the kill below; it holds standard output open until all is done.
set -m
{
  kill -9 -- "-$$"
  # A killed process counts until somebody reaps it. If nobody does, it holds nothing that would be missed.
  for _ in {1..250}; do
    kill -0 -- "-$$" || break
    sleep 0.02
  done
  if [ -e "$kept.operators" ]; then
    grep -F '"username":"user-' "$folder/audit.log" >"$kept.unfinished"
    mv "$kept.unfinished" "$kept.log"
  fi
  if [ -e "$folder/keep" ]; then
    rm -rf "$folder/etcd" "$folder/backups"
  else
    rm -rf "$folder"
  fi
} 2>/dev/null &
wait
