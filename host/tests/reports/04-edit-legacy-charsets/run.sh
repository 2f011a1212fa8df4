#!/usr/bin/env bash
# Source: anomalyco/opencode#45924 (GBK), github/copilot-cli#3732 (CP1252), lloydzhou/bash-agent#50. Kind: mostly ASCII sources with a
# few words in a legacy encoding. Bytes must stay; an ASCII edit must work; the words should be readable and writable.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
for name, enc, word in [("gbk","gbk","配置文件路径"),("gb2","gbk","中文"),("sjis","shift_jis","設定ファイル"),("euckr","euc-kr","설정 파일"),("big5","big5","設定檔案路徑"),("cp1251","cp1251","Файл настроек"),("cp1252","cp1252","Größe – „groß“"),("latin2","iso8859-2","Źródło danych")]:
    open(name+".c","wb").write(("/* build 1 */\nint main(void) { return 0; }\n// %s\n" % word).encode(enc))
    open(name+".word","w").write(word)
PY
for f in *.c; do n=${f%.c}; w=$(cat $n.word); cp $f $n.bak
  call readFile "{\"path\":\"$f\"}" > r.json || bad "$n cannot be read: $(head -1 $T/err)"
  grep -qF "$w" r.json && ok "$n reads $w" || echo "  note: $n is read as $(grep -o '// [^\\"]*' r.json | head -1)"
  call updateFile "{\"path\":\"$f\",\"old\":\"return 0\",\"new\":\"return 1\"}" >/dev/null || bad "$n: ASCII edit refused: $(head -1 $T/err)"
  python3 - $n <<'PY' && ok "$n keeps its bytes" || bad "$n: bytes changed"
import sys; n=sys.argv[1]; a=open(n+".bak","rb").read(); b=open(n+".c","rb").read(); sys.exit(0 if b==a.replace(b"return 0",b"return 1") else 1)
PY
  call updateFile "$(python3 -c "import json,sys;w=sys.argv[1];print(json.dumps({'path':'$f','old':'// '+w,'new':'// '+w+' ('+w+')'}))" "$w")" >/dev/null && ok "$n: its own word can be edited" || bad "$n: its own word cannot be edited: $(head -c 140 $T/err)"
done
verdict
