//! Asks a person about a call, and takes the question back where it answers itself.

use jaato_policy::{ArgumentsDigest, Call, Decision, Outcome, SessionRule, proposals, shell};
use jaato_types::hooks::Preview;
use jaato_types::{Event, PluginName, ToolCall, ToolName};
use tokio::sync::watch;

use super::ruling::{Asking, Remembered, Ruling};
use super::{CallRunner, CallsDone};
use crate::{Answer, KnownTool, Question, Reading, Scope};

/// What came of a question.
pub(super) enum Asked {
    Answer(Answer),
    /// The rules have changed meanwhile, and say what to do.
    Decided(Decision),
    /// Nobody answered in time.
    Late {
        patience_ms: u64,
    },
    /// Nobody need be asked: the call cannot do what it should.
    Refused(Ruling),
    /// The turn was cancelled meanwhile.
    Dropped,
}

/// An answer that holds for all calls of a model's answer that are the same.
#[derive(Debug)]
pub(super) struct Answered {
    tool: ToolName,
    plugin: PluginName,
    arguments: ArgumentsDigest,
    answer: Answer,
}

impl CallsDone {
    /// Returns what was answered to the same call before.
    pub(super) fn answer_to(&self, call: &Call<'_>) -> Option<Answer> {
        let is_same = |it: &&Answered| {
            (&it.tool, &it.plugin) == (call.tool, call.plugin) && it.arguments == digest(call)
        };
        self.answered.iter().find(is_same).map(|it| it.answer.clone())
    }

    fn note_answer(&mut self, call: &Call<'_>, answer: &Answer) {
        let answer = match answer {
            Answer::AllowOnce | Answer::AllowLike { .. } => Answer::AllowOnce,
            Answer::Deny { comment } | Answer::DenyLike { comment, .. } => {
                Answer::Deny { comment: comment.clone() }
            }
            Answer::Edit { .. } | Answer::Nobody { .. } => return,
        };
        let (tool, plugin, arguments) = (call.tool.clone(), call.plugin.clone(), digest(call));
        self.answered.push(Answered { tool, plugin, arguments, answer });
    }
}

fn digest(call: &Call<'_>) -> ArgumentsDigest {
    ArgumentsDigest::of(call.arguments)
}

/// Says what an answer may hold for, this call and later ones.
fn patterns(facts: &Call<'_>, asking: &Asking) -> Vec<String> {
    match asking.is_each {
        true => Vec::new(),
        false => proposals(facts).iter().map(|pattern| pattern.text(facts.tool)).collect(),
    }
}

/// Reads arguments as the rules do.
fn read(call: &Call<'_>) -> Reading {
    let Some(line) = call.command_line() else {
        return Reading { hosts: call.hosts(), ..Reading::default() };
    };
    let analysis = shell::analyse(&line);
    Reading {
        commands: analysis.commands.iter().map(|command| command.text()).collect(),
        risks: analysis.risks(),
        hosts: call.hosts(),
    }
}

impl CallRunner<'_> {
    /// Asks a person.
    pub(super) async fn ask(
        &self,
        (call, tool, preview): (&ToolCall, &KnownTool, Option<Preview>),
        facts: &Call<'_>,
        asking: &Asking,
        (times, was_edited): (usize, bool),
    ) -> Asked {
        if let Some(reason) = self.ports.asker.nobody() {
            return Asked::Answer(Answer::Nobody { reason });
        }
        let preview = match preview {
            Some(made) => Some(made),
            None => self.preview(call, tool).await,
        };
        if self.cancel.is_cancelled() {
            return Asked::Dropped;
        }
        if let Some(error) = preview.as_ref().and_then(|preview| preview.refusal.clone()) {
            return Asked::Refused(Ruling::refused_by_preview(error));
        }
        let changes = self.rules.changes();
        // While the preview was made, say.
        if let Some(decision) = self.decided_meanwhile(facts, asking) {
            return Asked::Decided(decision);
        }
        let patience_ms = self.patience_ms.or_else(|| self.ports.asker.patience_ms());
        let patterns = patterns(facts, asking);
        let reading = read(facts);
        let environment = self.ports.gate.place().environment;
        let (agent_type, agent_name) = self.agent_names();
        let scopes = if patterns.is_empty() { &Scope::ALL[..1] } else { &Scope::ALL[..] };
        self.emitter.emit(Event::PermissionAsked {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            rule: asking.rule.to_owned(),
            place: asking.place.clone(),
            why: asking.why.clone(),
            environment: environment.clone(),
            preview: preview.clone(),
            scopes: scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            patterns: patterns.clone(),
            commands: reading.commands.clone(),
            risks: reading.risks.clone(),
            hosts: reading.hosts.clone(),
            times: u32::try_from(times).unwrap_or(u32::MAX),
            patience_ms,
            agent_type: agent_type.to_owned(),
            agent_name: agent_name.to_owned(),
        });
        let question = Question {
            session: self.session,
            call,
            tool,
            by: self.origin.map(|origin| &origin.plugin),
            agent: self.agent.map(|agent| agent.name.as_str()),
            environment,
            decision: asking.decision.clone(),
            why: asking.why.clone(),
            patterns,
            times,
            reading: reading.clone(),
            was_edited,
            preview,
            patience_ms,
        };
        let of_origin = self.origin.map(|origin| origin.hold.hold());
        let _held = (of_origin, self.agent.map(|agent| agent.hold.hold()));
        self.answer(question, facts, asking, changes).await
    }

    /// Waits for the answer, or for what makes it needless.
    async fn answer(
        &self,
        question: Question<'_>,
        facts: &Call<'_>,
        asking: &Asking,
        mut changes: watch::Receiver<u64>,
    ) -> Asked {
        let patience_ms = question.patience_ms;
        let late = async {
            match patience_ms {
                Some(ms) => self.ports.clock.sleep(ms).await,
                None => std::future::pending().await,
            }
        };
        let answer = self.ports.asker.ask(question);
        tokio::pin!(answer, late);
        loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Asked::Dropped,
                answer = &mut answer => return Asked::Answer(answer),
                // An answer to another question may be one to this: the person is not asked twice.
                // Its sender is here: it cannot fail.
                _ = changes.changed() => {
                    if let Some(decision) = self.decided_meanwhile(facts, asking) {
                        return Asked::Decided(decision);
                    }
                }
                () = &mut late => {
                    return Asked::Late { patience_ms: patience_ms.unwrap_or_default() };
                }
            }
        }
    }

    /// Returns what the rules say by now, where they leave nothing to ask.
    fn decided_meanwhile(&self, facts: &Call<'_>, asking: &Asking) -> Option<Decision> {
        let decision = self.ports.gate.decide(&self.rules.lock(), facts);
        let is_decided = match decision.outcome {
            Outcome::Ask => false,
            Outcome::Allow => !asking.is_each,
            Outcome::Deny => true,
        };
        is_decided.then_some(decision)
    }

    /// Turns an answer into what becomes of the call, and remembers it as far as it should be.
    pub(super) fn rule_by(
        &self,
        answer: Answer,
        facts: &Call<'_>,
        asking: &Asking,
        done: &mut CallsDone,
    ) -> Ruling {
        done.note_answer(facts, &answer);
        let channel = self.ports.asker.channel();
        match answer {
            Answer::AllowOnce => Ruling::allow_by_person(channel),
            Answer::AllowLike { scope, pattern } => {
                let standing = jaato_policy::Answer::Always;
                match self.remember(facts, asking, (scope, Some(pattern)), standing) {
                    Some(remembered) => Ruling::allow_like(channel, remembered),
                    None => Ruling::allow_by_person(channel),
                }
            }
            Answer::Deny { comment } => Ruling::deny_by_person(facts, channel, comment),
            Answer::DenyLike { scope, pattern, comment } => {
                let standing = jaato_policy::Answer::Never;
                let remembered = self.remember(facts, asking, (scope, pattern), standing);
                Ruling::deny_like(facts, channel, comment, remembered)
            }
            Answer::Nobody { reason } => {
                let ruling = Ruling::deny_unasked(facts, asking, &reason);
                done.nobody_asked = done.nobody_asked.take().or_else(|| ruling.refusal.clone());
                ruling
            }
            Answer::Edit { .. } => unreachable!("taken by `pass_gate`"),
        }
    }

    /// Remembers an answer for later calls; says what of it is, which is nothing where the answer
    /// is for this call alone.
    fn remember(
        &self,
        facts: &Call<'_>,
        asking: &Asking,
        (scope, pattern): (Scope, Option<usize>),
        answer: jaato_policy::Answer,
    ) -> Option<Remembered> {
        // It would be asked again all the same.
        if asking.is_each && answer == jaato_policy::Answer::Always {
            return None;
        }
        let pattern = match pattern {
            Some(index) => proposals(facts).into_iter().nth(index)?,
            None => jaato_policy::Pattern::Tool,
        };
        if scope == Scope::Once {
            return None;
        }
        let (text, kind) = (pattern.text(facts.tool), pattern.name());
        let rule = SessionRule::with_pattern(facts, answer, pattern, scope);
        let scope = self.keep(&rule, scope);
        self.rules.change(|rules| rules.remember(rule));
        Some(Remembered { scope: scope.name(), text, kind })
    }

    /// Writes down what holds for good; returns how long it holds then.
    fn keep(&self, rule: &SessionRule, scope: Scope) -> Scope {
        if scope != Scope::Always {
            return scope;
        }
        match self.rules.keeper().map(|keeper| keeper.keep(rule)) {
            Some(Ok(place)) => {
                self.emitter.notice(format!("written into `{place}`"));
                Scope::Always
            }
            Some(Err(error)) => {
                let text = format!("it holds for this session, as it cannot be written: {error}");
                self.emitter.notice(text);
                Scope::Session
            }
            None => {
                self.emitter.notice("it holds for this session: nothing here writes it down");
                Scope::Session
            }
        }
    }
}
