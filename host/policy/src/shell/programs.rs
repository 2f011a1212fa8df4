//! What is known of programs: which of their options run nothing and write nothing.
//!
//! Only harmless options are listed. A list of dangerous ones would have to be complete, and no
//! list is: programs grow options, and GNU programs take every abbreviation of them.

/// What a program does with its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// What its name says, to the files and things that its words name.
    Plain,
    /// The same; and it runs code that lies in the folder where it works, such as hooks.
    RunsWorkspace,
    /// Its words are a program, or name a file with one.
    Interprets,
}

/// What is known of a program, or of one of its subcommands.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) nature: Nature,
    /// Letters of harmless short options. One with `:` behind it takes the rest of its word.
    pub(super) short: &'static str,
    /// Harmless long options, parted by spaces, without `--`. One that takes a value ends with `=`.
    pub(super) long: &'static str,
    /// Subcommands, where the first word that is no option is one.
    pub(super) subcommands: Option<&'static [Entry]>,
}

/// Programs or subcommands that are alike.
pub(super) struct Entry {
    names: &'static str,
    program: Program,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.names)
    }
}

/// Finds a program by its last name.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    find_in(PROGRAMS, name)
}

pub(super) fn find_in(entries: &'static [Entry], name: &str) -> Option<&'static Program> {
    let named = |entry: &&Entry| entry.names.split(' ').any(|known| known == name);
    entries.iter().find(named).map(|entry| &entry.program)
}

impl Program {
    /// Tells whether a word is no option, or one that is harmless.
    pub(super) fn takes(&self, word: &str) -> bool {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            return self.long.split(' ').any(|known| match (known.strip_suffix('='), value) {
                (Some(known), _) => known == name,
                (None, None) => !known.is_empty() && known == name,
                (None, Some(_)) => false,
            });
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return true;
        };
        for letter in letters.chars() {
            let Some(place) = self.short.find(letter).filter(|_| letter != ':') else {
                return false;
            };
            if self.short[place + letter.len_utf8()..].starts_with(':') {
                return true;
            }
        }
        true
    }
}

const fn plain(names: &'static str, short: &'static str, long: &'static str) -> Entry {
    let nature = Nature::Plain;
    Entry { names, program: Program { nature, short, long, subcommands: None } }
}

const fn runs(names: &'static str, short: &'static str, long: &'static str) -> Entry {
    let nature = Nature::RunsWorkspace;
    Entry { names, program: Program { nature, short, long, subcommands: None } }
}

const fn interprets(names: &'static str) -> Entry {
    let nature = Nature::Interprets;
    Entry { names, program: Program { nature, short: "", long: "", subcommands: None } }
}

const fn with(names: &'static str, long: &'static str, of: &'static [Entry]) -> Entry {
    let nature = Nature::RunsWorkspace;
    Entry { names, program: Program { nature, short: "", long, subcommands: Some(of) } }
}

const PROGRAMS: &[Entry] = &[
    plain(
        "ls dir vdir",
        "1aAbBcCdfFgGhHiklLmnNopqQrRsStTuUvwxXZ",
        "all almost-all author escape block-size= ignore-backups color= color directory classify \
         file-type full-time group-directories-first no-group human-readable si dereference hide= \
         inode ignore= kibibytes dereference-command-line indicator-style= numeric-uid-gid literal \
         hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size \
         sort= time= time-style= tabsize= width= context zero",
    ),
    plain(
        "cat",
        "AbeEnstTuv",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
    ),
    plain("tac", "br", "before regex"),
    plain("head", "c:n:qvz0123456789", "bytes= lines= quiet silent verbose zero-terminated"),
    plain(
        "tail",
        "c:n:qvzfFr0123456789",
        "bytes= lines= quiet silent verbose zero-terminated follow",
    ),
    plain("wc", "clLmw", "bytes chars lines max-line-length words total="),
    plain(
        "grep egrep fgrep",
        "EFGPHIKLRTUVZabce:f:hilnoqrsvwxyzm:A:B:C:0123456789",
        "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case \
         no-ignore-case invert-match word-regexp line-regexp count color= color colour= \
         files-without-match files-with-matches max-count= only-matching quiet silent no-messages \
         byte-offset with-filename no-filename label= line-number initial-tab null after-context= \
         before-context= context= text binary-files= exclude= exclude-dir= include= recursive \
         dereference-recursive line-buffered null-data",
    ),
    // Without `--pre`, `--hostname-bin` and `-z`, which run other programs.
    plain(
        "rg",
        "FHILNPSUVabce:f:g:hilm:nopqst:T:uvwxA:B:C:d:j:M:0",
        "after-context= before-context= context= case-sensitive ignore-case smart-case color= column \
         count count-matches files files-with-matches files-without-match fixed-strings glob= iglob= \
         heading no-heading hidden invert-match json line-number no-line-number line-regexp max-count= \
         max-depth= multiline no-filename no-ignore only-matching passthru pcre2 pretty quiet regexp= \
         sort= sortr= stats text trim type= type-not= type-list unrestricted vimgrep with-filename \
         word-regexp threads= no-config no-messages null files0 max-columns=",
    ),
    plain("echo", "neE", ""),
    plain("pwd", "LP", "logical physical"),
    plain("cd", "LP", ""),
    plain("true false : whoami tty arch nproc logname groups uptime", "", ""),
    plain("id", "agGnruzZ", "group groups name real user zero"),
    plain(
        "uname",
        "amnrspvio",
        "all machine nodename kernel-name kernel-release kernel-version operating-system",
    ),
    // Their words may be a name that is set, and a file that is written.
    interprets("hostname xxd"),
    // Without `-s` and `--set`, which set the clock.
    plain("date", "ud:R", "utc universal date= iso-8601 iso-8601= rfc-3339= rfc-email"),
    plain("basename", "as:z", "multiple suffix= zero"),
    plain("dirname", "z", "zero"),
    plain(
        "realpath",
        "emLPqsz",
        "canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= no-symlinks strip zero",
    ),
    plain(
        "readlink",
        "femnqsvz",
        "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
    ),
    plain("stat", "Lfc:t", "dereference file-system format= printf= terse"),
    plain(
        "file",
        "bhiLNprz0",
        "brief mime mime-type mime-encoding dereference no-dereference no-pad preserve-date raw print0",
    ),
    plain(
        "du",
        "abcDhHklLmPsSxd:t:0",
        "all apparent-size bytes total dereference-args human-readable si kilobytes dereference no-dereference separate-dirs summarize one-file-system max-depth= threshold= null exclude= time block-size=",
    ),
    plain(
        "df",
        "ahHiklPTx:t:",
        "all human-readable si inodes local portability print-type type= exclude-type= total block-size= output=",
    ),
    plain(
        "ps",
        "AaCdefFgGlLjmNopqrstTuUvwxXyZHO0123456789:",
        "forest no-headers headers sort= pid= ppid= user= group= format= cols=",
    ),
    plain("free", "bkmghltws:c:", "bytes kilo mega giga human si total wide lohi"),
    plain("which", "as", "all"),
    plain("type", "afptP", ""),
    plain("seq", "f:s:w", "format= separator= equal-width"),
    plain("sleep", "", ""),
    plain("[ test", "bcdefghkLnprsStuwxzGNOa", ""),
    plain(
        "cut",
        "b:c:d:f:nsz",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated",
    ),
    plain("tr", "cCdst", "complement delete squeeze-repeats truncate-set1"),
    plain(
        "nl",
        "b:d:f:h:i:l:n:ps:v:w:",
        "body-numbering= line-increment= number-format= number-separator= starting-line-number= number-width=",
    ),
    plain(
        "od hexdump",
        "A:bcCdDeEfFHiIj:lLN:oOsS:t:vw:xX",
        "address-radix= skip-bytes= read-bytes= strings= format= output-duplicates width=",
    ),
    plain("column", "tns:c:x", "table separator= output-separator= columns= fillrows"),
    plain("comm", "123z", "check-order nocheck-order output-delimiter= total zero-terminated"),
    plain(
        "join",
        "a:e:i1:2:j:o:t:v:z",
        "ignore-case check-order nocheck-order header zero-terminated",
    ),
    plain("paste", "d:sz", "delimiters= serial zero-terminated"),
    plain(
        "fold fmt",
        "bcstuw:p:g:",
        "bytes spaces width= goal= prefix= split-only uniform-spacing",
    ),
    plain("rev", "", ""),
    plain(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
        "abcltwz",
        "binary check tag text zero ignore-missing quiet status strict warn algorithm= length=",
    ),
    plain("cmp", "bi:ln:s", "print-bytes ignore-initial= verbose bytes= quiet silent"),
    plain(
        "diff",
        "abBcC:dD:eE:fF:hHiI:nNpqrsStTuU:vwW:x:yZ0123456789",
        "brief report-identical-files context= unified= normal side-by-side width= left-column \
         suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab \
         recursive no-dereference new-file unidirectional-new-file ignore-file-name-case exclude= \
         ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space \
         ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal color= color",
    ),
    // Without `-o`, `-T`, `--compress-program`, `--files0-from`.
    plain(
        "sort",
        "bdfghiMnRrVck:mst:uz",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check key= merge stable field-separator= unique zero-terminated",
    ),
    // Its second word is a file that it writes.
    interprets("uniq"),
    plain(
        "tree",
        "adfiLl:P:I:NqQpsuhgDFrtUvcnCAS0123456789",
        "dirsfirst noreport prune du si gitignore filelimit= sort=",
    ),
    plain(
        "jq",
        "acCeijMnrRsS",
        "arg argjson compact-output raw-output raw-input slurp null-input sort-keys exit-status join-output tab indent= color-output monochrome-output",
    ),
    plain("strings", "an:t:ef:o", "all bytes= radix= encoding="),
    plain("printenv", "0", "null"),
    plain("mkdir", "pvm:", "parents verbose mode="),
    plain("rmdir", "pv", "parents verbose ignore-fail-on-non-empty"),
    plain("touch", "acd:hmr:t:", "no-create date= no-dereference reference= time="),
    plain(
        "cp",
        "aAbdfHilLnPprRsuvx",
        "archive attributes-only force interactive link dereference no-clobber no-dereference preserve= preserve recursive symbolic-link update verbose one-file-system",
    ),
    plain("mv", "bfinuv", "force interactive no-clobber update verbose"),
    plain(
        "rm",
        "dfiIrRv",
        "force recursive dir interactive= one-file-system preserve-root verbose",
    ),
    plain("ln", "fLnPrsv", "force logical no-dereference physical relative symbolic verbose"),
    plain("chmod", "cfvR", "changes quiet silent verbose recursive"),
    plain("tee", "aip", "append ignore-interrupts"),
    plain("kill pkill killall", "s:lLn:f0123456789HINTERMKLUS", "signal="),
    plain(
        "curl",
        "sSfLIvik046#G",
        "silent show-error fail location head include verbose compressed get ipv4 ipv6 max-time= \
         connect-timeout= retry= insecure fail-with-body http1.1 http2",
    ),
    plain("cal ncal", "13jmwy", ""),
    with("git", "no-pager literal-pathspecs no-optional-locks version", GIT),
    with("cargo", "version offline locked frozen quiet verbose color=", CARGO),
    with("npm pnpm yarn", "version silent", NPM),
    with("go", "", GO),
    with("docker podman", "version", DOCKER),
    with("kubectl", "version namespace= context=", KUBECTL),
    with("pip pip3", "version", PIP),
    with("rustup", "version", RUSTUP),
    with("systemctl", "version no-pager user", SYSTEMCTL),
    runs("make gmake just", "BknsStwq", "dry-run just-print keep-going silent quiet version"),
    // Without `-t`, whose tools do much.
    runs("ninja", "knvw", "quiet verbose version"),
    runs("pytest tox nox", "vqxslr", "verbose quiet exitfirst lf ff collect-only co maxfail= tb="),
    runs(
        "tsc eslint prettier jest vitest mocha black ruff mypy flake8 pylint isort",
        "v",
        "check noEmit no-emit version verbose quiet",
    ),
    interprets(
        "sh bash dash zsh ksh mksh ash fish csh tcsh busybox pwsh nu elvish xonsh \
         python python2 python3 pypy pypy3 ipython perl ruby node nodejs deno bun php lua luajit \
         tclsh wish Rscript R julia irb ghci guile racket sbcl clisp scala groovy kotlin java javac \
         awk gawk mawk nawk sed ed ex vi vim nvim view emacs nano less more most man pg info \
         gdb lldb sqlite3 psql mysql mongo redis-cli ftp sftp ssh scp rsync telnet nc ncat netcat \
         socat openssl wget aria2c parallel find fd fdfind tar zip unzip 7z cpio pax ar \
         dd install patch ctags tmux screen script expect at batch crontab bc dc m4 cpp gcc cc g++ \
         c++ clang clang++ ld as gnuplot ffmpeg pandoc latex pdflatex tex xelatex dvips gs convert \
         printf su run0 pkexec chroot unshare nsenter ip tcpdump mount systemd-run npx bunx \
         pnpx uvx uv pipx poetry bundle rake gem composer mix rebar3 gradle gradlew mvn mvnw ant sbt \
         cmake ctest meson bazel buck terraform ansible ansible-playbook vagrant helm gh hub svn hg \
         bzr fossil source . eval trap",
    ),
];

const GIT: &[Entry] = &[
    runs(
        "status",
        "sbuvz",
        "short branch porcelain porcelain= long verbose untracked-files untracked-files= ignored ignored= show-stash ahead-behind no-ahead-behind renames no-renames",
    ),
    // Without `--output`, `--ext-diff`, `--textconv` and `-O`.
    runs(
        "diff log show whatchanged",
        "apubBMCDRwWzn:S:G:0123456789igEFPU:rcm",
        "patch no-patch unified= raw stat stat= numstat shortstat dirstat summary name-only \
         name-status color color= no-color word-diff word-diff= color-words no-renames check \
         full-index binary abbrev abbrev= find-renames find-copies diff-filter= pickaxe-all \
         pickaxe-regex relative relative= text ignore-space-at-eol ignore-space-change \
         ignore-all-space ignore-blank-lines function-context no-ext-diff no-textconv cached staged \
         merge-base exit-code quiet oneline pretty pretty= format= graph decorate decorate= \
         all branches branches= tags tags= remotes remotes= max-count= skip= since= after= until= \
         before= author= committer= grep= all-match invert-grep merges no-merges first-parent \
         reverse date= follow left-right topo-order date-order no-decorate abbrev-commit \
         histogram patience minimal ours theirs base",
    ),
    runs(
        "branch",
        "avrl",
        "all remotes list verbose contains contains= no-contains= merged merged= no-merged show-current sort= points-at= format= color no-color column no-column",
    ),
    runs("tag", "ln", "list contains contains= merged no-merged sort= points-at= format="),
    runs("remote", "v", "verbose"),
    runs(
        "rev-parse",
        "q",
        "abbrev-ref abbrev-ref= short short= verify show-toplevel show-prefix git-dir is-inside-work-tree is-bare-repository symbolic symbolic-full-name all branches tags quiet",
    ),
    runs(
        "rev-list",
        "n:0123456789",
        "count max-count= all since= until= no-merges merges first-parent reverse oneline",
    ),
    runs(
        "ls-files",
        "cdmorstuvxz",
        "cached deleted modified others ignored stage unmerged killed exclude-standard full-name error-unmatch",
    ),
    runs("ls-tree", "drtlz", "name-only name-status full-name full-tree long"),
    // Without `--contents` and `--open-files-in-pager`.
    runs(
        "blame annotate",
        "bcefL:lnpstwMC",
        "root show-stats porcelain line-porcelain show-name show-number show-email date=",
    ),
    runs(
        "grep",
        "EFGPHILVWacefhilnopqrvwz0123456789A:B:C:",
        "cached untracked no-index ignore-case word-regexp invert-match text line-number count files-with-matches files-without-match name-only only-matching heading break show-function function-context and or not all-match quiet max-depth= color no-color extended-regexp fixed-strings perl-regexp",
    ),
    runs("shortlog", "snec", "summary numbered email group="),
    runs("describe", "", "all tags long dirty always abbrev= exact-match match= contains"),
    runs("cat-file", "eptsw", "batch-check"),
    runs("merge-base", "a", "all octopus independent is-ancestor fork-point"),
    runs(
        "name-rev count-objects show-ref for-each-ref check-ignore",
        "vsdhlqn",
        "verbose heads tags hash name-only count= format= sort= quiet",
    ),
    runs("reflog", "", ""),
    runs("stash", "uqkapm:", "include-untracked keep-index quiet all patch message="),
    runs(
        "add",
        "vnuAfp",
        "verbose dry-run update all force no-all ignore-removal intent-to-add refresh ignore-errors",
    ),
    runs(
        "commit",
        "am:qvsn",
        "all message= quiet verbose signoff amend no-edit allow-empty dry-run short branch author= date=",
    ),
    runs("checkout switch", "bBcdqt", "detach quiet track no-track ours theirs create orphan"),
    runs("restore", "sSWqp", "source= staged worktree quiet ours theirs"),
    runs("reset", "qpN", "soft mixed quiet"),
    runs("mv rm", "fknrqv", "cached dry-run force quiet verbose"),
    runs(
        "fetch pull",
        "apqtvn",
        "all append prune tags no-tags quiet verbose depth= dry-run ff-only no-rebase rebase",
    ),
    runs("push", "qvnu", "quiet verbose dry-run set-upstream tags follow-tags"),
    // Without `-x`, which `rebase` runs.
    runs(
        "merge cherry-pick revert rebase",
        "qvn",
        "abort continue skip quit ff-only no-ff no-commit quiet verbose squash no-edit",
    ),
    runs("init", "q", "quiet bare"),
    runs("version help", "", ""),
];

const CARGO: &[Entry] = &[
    runs(
        "build check test clippy doc bench run b c t r fmt tree metadata",
        "p:qvj:F:e:i",
        "package= workspace all all-targets lib bins bin= tests test= benches bench= examples \
         example= exclude= features= all-features no-default-features release profile= target= \
         message-format= message-format jobs= keep-going locked offline frozen quiet verbose \
         no-run no-fail-fast no-deps document-private-items check all edition= depth= invert= \
         duplicates format-version= color=",
    ),
    runs("search info version help locate-project pkgid verify-project", "q", "limit= quiet"),
    runs(
        "update fetch clean add remove",
        "p:qv",
        "package= dry-run precise= workspace quiet verbose release locked offline dev build features= no-default-features optional",
    ),
];

const NPM: &[Entry] = &[runs(
    "test t run run-script start build lint install i ci ls list outdated view info audit why version",
    "DgPS",
    "silent if-present workspaces workspace= depth= all json long omit= save-dev save no-save production dry-run",
)];

const GO: &[Entry] = &[
    // `-exec`, `-toolexec`, `-o`, `-vettool`, `-modfile` are not here, and no option is.
    runs("build test vet fmt list version env doc mod", "v", ""),
];

const DOCKER: &[Entry] = &[plain(
    "ps images logs inspect version info top port diff history",
    "aqnlsft",
    "all quiet no-trunc size tail= since= until= timestamps format= filter= latest last=",
)];

const KUBECTL: &[Entry] = &[plain(
    "get describe logs top version explain api-resources",
    "n:o:l:AwcpR",
    "namespace= output= selector= all-namespaces watch show-labels since= tail= container= previous sort-by= no-headers",
)];

const PIP: &[Entry] =
    &[plain("list show freeze check", "vqo", "outdated format= verbose quiet files")];

const RUSTUP: &[Entry] = &[plain("show check which", "v", "verbose installed")];

const SYSTEMCTL: &[Entry] = &[plain(
    "status show is-active is-enabled is-failed list-units list-unit-files cat",
    "aln:o:p:t",
    "all full lines= output= property= type= state= no-pager",
)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_stands_in_one_place() {
        for entries in [PROGRAMS, GIT, CARGO, NPM, GO, DOCKER, KUBECTL, PIP, RUSTUP, SYSTEMCTL] {
            let mut names: Vec<&str> =
                entries.iter().flat_map(|entry| entry.names.split(' ')).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{entries:?}");
            assert!(!names.contains(&""), "{entries:?}");
        }
    }

    #[test]
    fn abbreviations_and_clusters_are_no_way_round() {
        let sort = find("sort").unwrap();
        let (yes, no) = (
            ["-rn", "-k2", "-t,", "--reverse", "--key=2", "file", "-", "-k2o"],
            [
                "-o",
                "-ro",
                "-rofile",
                "--output=x",
                "--out",
                "--compress-program=x",
                "--comp=x",
                "-T",
                "--reverse=x",
                "--",
                "--r",
            ],
        );
        yes.iter().for_each(|word| assert!(sort.takes(word), "{word}"));
        no.iter().for_each(|word| assert!(!sort.takes(word), "{word}"));
    }
}
